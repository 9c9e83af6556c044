"""A source, a replica, or a whole warehouse that comes back from a backup, between two copies (C63, C64)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lithify.errors import ConflictError
from lithify.model.record import Record
from lithify.model.topic.log import RUN_IDS_KEPT
from lithify.service.replica.verify import verify_replica
from lithify.service.write.append import append
from support.faults.topics import NAME
from support.topics.replicas import Pair, a_pair


def written(pair: Pair, *values: bytes) -> None:
    """One commit for each value, all of the same size and time."""
    for value in values:
        append(pair.source, NAME, [Record(key=b"key", value=value, timestamp=5, partition=0)])


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """The source has a backup, and the replica has one commit more."""
    pair = a_pair("iceberg", tmp_path)
    written(pair, *[b"kept"] * RUN_IDS_KEPT)
    folder = tmp_path / "source"
    shutil.copytree(folder, tmp_path / "backup")
    written(pair, b"lost")
    pair.mirrored()
    shutil.rmtree(folder)
    shutil.move(tmp_path / "backup", folder)
    return pair


def test_another_history_that_looks_the_same_c64(pair: Pair) -> None:
    written(pair, b"left")
    append(pair.source, NAME, [Record(key=b"key", value=b"elsewhere", timestamp=5, partition=1)])
    with pytest.raises(ConflictError, match="its logs lack commits of its version"):
        pair.mirror()


def test_another_history_that_looks_the_same_and_is_too_long_to_be_found_is_copied_c63(pair: Pair) -> None:
    written(pair, b"left")
    for _ in range(RUN_IDS_KEPT):
        append(pair.source, NAME, [Record(key=b"key", value=b"elsewhere", timestamp=5, partition=1)])
    pair.mirrored()


def test_another_history_of_the_same_length_c64(pair: Pair) -> None:
    written(pair, b"left")
    assert not verify_replica(pair.source, pair.target, NAME).clean
    with pytest.raises(ConflictError, match="is not the one that the replica has"):
        pair.mirror()
