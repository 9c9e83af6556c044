"""How far a reader has taken a log, as a value that is stored (C7, C49)."""

from __future__ import annotations

import pytest

import lithify
from lithify.errors import RefusedError
from lithify.model.cursor import Cursor
from lithify.model.names import LogId, TopicName
from lithify.model.topic.log import LogState
from support.builders import a_topic


def test_a_cursor_reads_back_as_it_was_written():
    cursor = Cursor("i", 2, 7, 5)
    assert cursor.to_json() == {"identity": "i", "generation": 2, "offset": 7, "epoch": 5}
    assert Cursor.from_json(cursor.to_json()) == cursor


def test_a_cursor_without_an_epoch_is_read():
    stored = {"identity": "i", "generation": 2, "offset": 7, "as_of_ms": 9}
    assert Cursor.from_json(stored) == Cursor("i", 2, 7, 0, 9)
    assert Cursor.from_json(stored | {"epoch": 3}) == Cursor("i", 2, 7, 3)


@pytest.mark.parametrize("stored", [{}, {"identity": "i", "generation": 0, "offset": "x", "epoch": 1}, []])
def test_anything_but_a_cursor_is_an_error(stored):
    with pytest.raises((KeyError, ValueError, TypeError)):
        Cursor.from_json(stored)


@pytest.mark.parametrize("number", [1.5, float("nan"), float("inf"), None, [2]])
@pytest.mark.parametrize("name", ["generation", "offset", "epoch"])
def test_a_cursor_has_whole_numbers(name, number):
    """A reader at an offset that is not a number would never come to an end, and no epoch is above NaN."""
    cursor = {"identity": "i", "generation": 2, "offset": 7, "epoch": 5, name: number}
    with pytest.raises(TypeError):
        Cursor.from_json(cursor)
    with pytest.raises(TypeError):
        Cursor(**cursor)


def test_place_is_an_earlier_name_of_the_class():
    assert lithify.Place is lithify.Cursor is Cursor


def test_a_cursor_says_of_which_partition_it_is_and_one_of_a_version_before_does_not():
    log = LogId(TopicName("default", "orders"), 1)
    stored = {"identity": "i", "generation": 2, "offset": 7, "epoch": 5}
    Cursor.from_json(stored).check_is_of(log)
    ours, others = (Cursor.from_json({**stored, "partition": partition}) for partition in (1, 0))
    ours.check_is_of(log)
    assert ours == others == Cursor.from_json(stored), "it is no part of where a reader is"
    assert ours.to_json()["partition"] == 1
    with pytest.raises(RefusedError, match=r"orders-1: the cursor belongs to partition 0"):
        others.check_is_of(log)


def test_a_cursor_keeps_the_commit_that_it_has_read_and_one_of_a_version_before_has_none():
    stored = {"identity": "i", "generation": 2, "offset": 7, "epoch": 5}
    cursor = Cursor.from_json(stored | {"version": 4, "run": "r", "of a later version": 1})
    assert (cursor.version, cursor.run, cursor) == (4, "r", Cursor.from_json(stored))
    assert cursor.to_json() == {**stored, "version": 4, "run": "r"}
    assert cursor.without_run().to_json() == stored
    assert Cursor.of(a_topic(log := LogState(0)), log, 0).run is None
    with pytest.raises(TypeError):
        Cursor.from_json(stored | {"version": 1.5, "run": "r"})
