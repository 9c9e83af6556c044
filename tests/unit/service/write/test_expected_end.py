"""Appends that expect a log end: a writer that was taken over appends nothing (C60)."""

from __future__ import annotations

import pytest

from lithify.errors import FencedError, UnknownTopicError
from lithify.model.record import Record
from lithify.service.change.cut import truncate
from lithify.service.write.append import append
from support.faults.topics import NAME, SIDE_BY_SIDE, memory_warehouse, prepared


@pytest.fixture
def warehouse(tmp_path):
    return prepared(memory_warehouse, tmp_path, SIDE_BY_SIDE)


def one(partition=0):
    return [Record(b"k", b"v", 7, partition=partition)]


def ends(warehouse):
    return [log.log_end_offset for log in warehouse.store.load(NAME).logs]


def test_a_writer_goes_on_at_the_end_that_it_knows(warehouse):
    before = ends(warehouse)
    for partition in (0, 1):
        (taken,) = append(warehouse, NAME, one(partition), expected_end={partition: before[partition]}).ranges
        assert taken.start_offset == before[partition]
    append(warehouse, NAME, one(), expected_end=dict(enumerate(ends(warehouse))))


@pytest.mark.parametrize("of_another_log", [False, True])
def test_a_writer_that_was_taken_over_appends_nothing(warehouse, of_another_log):
    known, other = dict(enumerate(ends(warehouse))), int(of_another_log)
    append(warehouse, NAME, one(other))
    before = warehouse.store.load(NAME)
    with pytest.raises(FencedError, match=rf"orders-{other} ends at {known[other] + 1}, not at {known[other]}"):
        append(warehouse, NAME, one(), expected_end=known)
    assert warehouse.store.load(NAME) == before


def test_a_log_that_was_truncated_is_not_the_expected_one(warehouse):
    known = dict(enumerate(ends(warehouse)))
    truncate(warehouse, NAME, 0, known[0] - 1, below_compacted=True)
    with pytest.raises(FencedError):
        append(warehouse, NAME, one(), expected_end=known)


def test_another_writer_that_comes_during_the_append_wins(warehouse, monkeypatch):
    known, receive = dict(enumerate(ends(warehouse))), type(warehouse.files).receive

    def overtaken(files, state, *args, **kwargs):
        monkeypatch.undo()
        append(warehouse, NAME, one())
        return receive(files, state, *args, **kwargs)

    monkeypatch.setattr(type(warehouse.files), "receive", overtaken)
    with pytest.raises(FencedError):
        append(warehouse, NAME, one(), expected_end=known)
    assert ends(warehouse)[0] == known[0] + 1


def test_a_partition_that_is_not_there_is_refused(warehouse):
    with pytest.raises(UnknownTopicError, match="no partition 7"):
        append(warehouse, NAME, one(), expected_end={7: 0})
