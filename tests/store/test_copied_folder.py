"""The folder of a warehouse that was copied: its catalog names files of the original, which nothing may touch (C47)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lithify.api.lake import Lake, open_lake
from lithify.errors import LocationChangedError
from lithify.model.record import Record


@pytest.fixture
def original(tmp_path: Path) -> Lake:
    lake = open_lake(str(tmp_path / "original"))
    lake.create_topic("t").append([Record(b"a", b"1")])
    return lake


VERBS: Mapping[str, Callable[[Lake], object]] = {
    "append": lambda lake: lake.topic("t").append([Record(b"b", b"2")]),
    "read": lambda lake: list(lake.topic("t").reader()),
    "sweep": lambda lake: lake.topic("t").sweep(delete=True),
    "alter": lambda lake: lake.topic("t").alter({"retention.ms": "7d"}),
    "delete": lambda lake: lake.delete_topic("t"),
}
REPAIRS: Mapping[str, Callable[[Lake], object]] = {
    "plan a repair": lambda lake: lake.repair("t"),
    "repair": lambda lake: lake.repair("t", repair=True),
}


@pytest.mark.parametrize("verb", [*VERBS, *REPAIRS])
def test_a_copy_of_a_folder_is_refused(original: Lake, tmp_path: Path, verb: str) -> None:
    """A deletion in a copy deleted the files of the original."""
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    files = {path: path.read_bytes() for path in (tmp_path / "original").rglob("*.*") if path.is_file()}
    copy = open_lake(str(tmp_path / "copy"))
    with pytest.raises(LocationChangedError, match=r"references files outside of it.*replicas\(\)\.add"):
        (VERBS | REPAIRS)[verb](copy)
    assert [shown.state.name for shown in copy.status().topics] == ["UNREADABLE"]
    assert files == {path: path.read_bytes() for path in (tmp_path / "original").rglob("*.*") if path.is_file()}
    assert [record.value for record in original.topic("t").reader()] == [b"1"]


@pytest.mark.parametrize("verb", REPAIRS)
def test_a_repair_says_that_the_folder_was_moved(original: Lake, tmp_path: Path, verb: str) -> None:
    """It said that no folder had the topic."""
    (tmp_path / "original").rename(tmp_path / "moved")
    moved = open_lake(str(tmp_path / "moved"))
    with pytest.raises(LocationChangedError, match=r"references files outside of it"):
        REPAIRS[verb](moved)
    (tmp_path / "moved").rename(tmp_path / "original")
    assert [record.value for record in original.topic("t").reader()] == [b"1"]


def test_no_folder_of_another_warehouse_is_taken(original: Lake, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    copy = open_lake(str(tmp_path / "copy"))
    with pytest.raises(LocationChangedError, match=r"outside"):
        copy.repair("t", repair=True, folder=original.topic("t").info().location)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "delete"])
def test_a_link_to_a_folder_is_no_copy_of_it(original: Lake, tmp_path: Path, verb: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "original")
    VERBS[verb](open_lake(str(tmp_path / "link")))
    (tmp_path / "original").rename(tmp_path / "elsewhere")
    (tmp_path / "original").symlink_to(tmp_path / "elsewhere")
    VERBS[verb](open_lake(str(tmp_path / "elsewhere")))
