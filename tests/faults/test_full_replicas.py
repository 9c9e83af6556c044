"""Replicas on a disk that is full, or that may not be written: the copy says so, and gets through later (C65)."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from faults.test_full_disk import DISK_BYTES, MOST_BLOCKS, filled
from faults.test_replicas import a_late_pair
from lithify.errors import InsufficientSpaceError, LithifyError, WarehouseError
from lithify.ports.store import Warehouse
from lithify.service.replica.verify import verify_replica
from lithify.store.iceberg import open_store
from support.faults.topics import NAME, picture
from support.servers.disks import an_open_folder, read_only, small_disk
from support.topics.replicas import Pair, a_pair


def moved(pair: Pair, folder: Path) -> Pair:
    """The same source, and no replica yet in a warehouse in another folder."""
    return Pair(pair.source, Warehouse(*open_store(str(folder), None, pair.clock.new_id), pair.clock))


def test_a_copy_to_a_full_disk_is_refused_and_names_nothing_c65(tmp_path):
    with small_disk(tmp_path / "small", DISK_BYTES) as disk:
        pair = moved(a_pair("iceberg", tmp_path), disk / "warehouse")
        pair.mirror()
        pair = Pair(a_late_pair("iceberg", tmp_path / "other").source, pair.target)
        pair.target.store.drop_topic(NAME)
        refused = 0
        for blocks in count():
            assert blocks < MOST_BLOCKS
            with filled(disk, blocks):
                try:
                    pair.mirror()
                except (WarehouseError, InsufficientSpaceError) as error:
                    assert "no space is left" in error.message or " free" in error.message
                else:
                    break
            refused += 1
            if NAME in pair.target.store.topics():
                assert not any(log.log_end_offset for log in pair.target.store.load(NAME).logs)
        assert refused > 5
        assert picture(pair.target) == picture(pair.source)
        assert verify_replica(pair.source, pair.target, NAME).clean


def test_a_copy_that_needs_more_than_is_free_is_refused_before_it_begins_c65(tmp_path, monkeypatch):
    pair = a_late_pair("memory", tmp_path)
    before = picture(pair.target)
    monkeypatch.setattr(type(pair.target.files), "free_bytes", lambda _files, _state: 10)
    with pytest.raises(InsufficientSpaceError, match="10 B free"):
        pair.mirror()
    monkeypatch.undo()
    assert picture(pair.target) == before
    pair.mirrored()


def test_a_replica_that_may_not_be_written_is_left_as_it_is_c65(tmp_path):
    with an_open_folder() as folder:
        pair = a_late_pair("iceberg", folder)
        before = picture(pair.target)
        with (
            read_only(folder / "target"),
            pytest.raises(LithifyError, match=r"not writable|read-only|cannot be opened"),
        ):
            pair.mirror()
        assert picture(pair.target) == before
        pair.mirrored()
