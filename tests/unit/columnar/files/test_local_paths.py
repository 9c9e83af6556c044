"""Which spellings name a path of this machine, and which another machine's."""

from __future__ import annotations

import pytest

from lithify.api.wiring.completion_names import CompletionNames
from lithify.columnar.files.access import local_path

SPELLINGS = ["/lake/eu", "file:///lake/eu", "file:/lake/eu", "file://localhost/lake/eu"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_path_of_this_machine(spelling: str) -> None:
    assert local_path(spelling) == str(CompletionNames(spelling, None)._folder()) == "/lake/eu"


@pytest.mark.parametrize("spelling", ["file://server/lake/eu", "s3://bucket/lake", "memory://x", "lake/eu"])
def test_no_path_of_this_machine(spelling: str) -> None:
    assert local_path(spelling) is None
