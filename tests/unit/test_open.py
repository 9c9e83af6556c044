"""A lake is opened by text or by a path."""

from __future__ import annotations

from pathlib import Path

import lithify


def test_a_folder_may_be_given_as_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    lithify.open(folder).create_topic("orders")
    assert repr(lithify.open(folder)) == repr(lithify.open(str(folder)))
    assert [topic.name for topic in lithify.open(str(folder)).topics()] == ["orders"]
