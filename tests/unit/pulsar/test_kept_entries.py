"""Entries that a task keeps are those that it has read, and are asked for once (C54)."""

from __future__ import annotations

import pytest

from lithify.errors import EngineError
from lithify.model.message import MessageId
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.rounds.kept import LIST_BYTES, KeptEntries

ENTRIES = [RawEntry(5, number, bytes([number]) * (LIST_BYTES // 3)) for number in range(10)]
END = MessageId(5, 9)


class Counting:
    """A reader that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def read(self, start, end, *, compacted=False):
        self.asked.append(compacted)
        yield ENTRIES[:7]
        yield ENTRIES[7:]


def all_of(lists):
    return [raw for entries in lists for raw in entries]


def test_entries_are_asked_for_once(tmp_path):
    reader = Counting()
    kept = KeptEntries(reader, tmp_path)
    assert all_of(kept.read(None, END)) == ENTRIES
    again = list(kept.read(None, END))
    assert all_of(again) == ENTRIES
    assert max(map(len, again)) <= 3
    assert reader.asked == [False]


def test_a_view_is_not_kept(tmp_path):
    """It may be large, and is read once."""
    reader = Counting()
    kept = KeptEntries(reader, tmp_path)
    assert all_of(kept.read(None, END, compacted=True)) == ENTRIES
    assert all_of(kept.read(None, END, compacted=True)) == ENTRIES
    assert reader.asked == [True, True]
    assert list(tmp_path.iterdir()) == []


def test_a_read_that_was_not_finished_is_not_taken_for_the_whole(tmp_path):
    reader = Counting()
    kept = KeptEntries(reader, tmp_path)
    begun = kept.read(None, END)
    assert next(begun) == ENTRIES[:7]
    begun.close()
    assert all_of(kept.read(None, END)) == ENTRIES
    assert all_of(kept.read(None, END)) == ENTRIES
    assert reader.asked == [False, False]


def test_a_full_disk_is_an_error_of_the_engine(tmp_path):
    with pytest.raises(EngineError, match="cannot be kept"):
        all_of(KeptEntries(Counting(), tmp_path / "gone").read(None, END))
