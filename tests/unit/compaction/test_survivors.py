"""The oracle itself, case by case: what one round leaves of one log (C1, C4, C9, C12 to C18, C22)."""

from __future__ import annotations

import pytest

from lithify.compaction.rules import Cause
from lithify.compaction.survivors import survivors
from lithify.model.record import Record
from support.builders import a_log, draw, some_rules


def left(text, *, horizon=None, **rules):
    """The log of `text` after a round, drawn."""
    records = a_log(text).records
    outcome = survivors(records, some_rules(len(records) if horizon is None else horizon, **rules))
    return draw([outcome.records])


def losers(text, **rules):
    records = a_log(text).records
    return survivors(records, some_rules(len(records), **rules)).losers


def test_the_highest_offset_of_a_key_wins():
    """C9, C4."""
    assert left("a=1 b=2 a=3 | b=4 c=5") == "a=3@2 b=4@3 c=5@4"
    assert losers("a=1 b=2 a=3 | b=4 c=5") == {Cause.SUPERSEDED: 2}


def test_the_highest_offset_wins_whatever_the_timestamps():
    """C9."""
    assert left("a=1!900 a=2!100") == "a=2@1"


def test_the_order_in_which_segments_are_read_does_not_matter():
    """C9."""
    records = a_log("a=1 b=2 a=3 b=4").records
    assert survivors(reversed(records), some_rules(4)) == survivors(records, some_rules(4))


def test_a_survivor_is_the_very_record():
    """C1: offset, timestamp, timestamp type, key, value and headers, to the byte."""
    kept = Record(
        b"\x00\xff", b"\xfe" * 3, -7, (("h", None), ("h", b""), ("", b"\x00")), 5, 41, timestamp_type="LogAppendTime"
    )
    assert survivors([kept], some_rules(42)).records == (kept,)


def test_nothing_at_or_above_the_horizon_is_looked_at():
    """C14: a newer record there does not beat one below, and is not returned."""
    assert left("a=1 b=2 | a=3", horizon=2) == "a=1@0 b=2@1"


def test_keys_are_compared_as_exact_bytes():
    """C12: an empty key is a key; one that another begins with is another."""
    assert left("''=1 a=2 aa=3 A=4 ''=5") == "a=2@1 aa=3@2 A=4@3 ''=5@4"


def test_a_null_key_is_none():
    """C12, C16: keyless records do not beat each other, nor an empty key."""
    assert left("·=1 ·=2 ''=3", keep_keyless=True) == "·=1@0 ·=2@1 ''=3@2"


def test_keyless_records_go_unless_they_are_retained():
    """C16: counted as such, whether or not they have a value."""
    assert left("·=1 a=2 ·=∅") == "a=2@1"
    assert losers("·=1 a=2 ·=∅") == {Cause.NO_KEY: 2}


def test_a_keyless_null_value_is_no_tombstone():
    """C16, C18: with null.key=retain it stays, however old."""
    assert left("·=∅ a=1", keep_keyless=True, tombstones_expire_below=2) == "·=∅@0 a=1@1"


def test_a_tombstone_removes_what_it_beats_and_stays():
    """C18, C4."""
    assert left("a=1 a=∅") == "a=∅@1"


def test_an_expired_tombstone_goes_with_all_that_it_beats():
    """C18, C20: an older value does not come back."""
    assert left("a=1 a=∅ b=2", tombstones_expire_below=2) == "b=2@2"
    assert losers("a=1 a=∅ b=2", tombstones_expire_below=2) == {Cause.SUPERSEDED: 1, Cause.EXPIRED_TOMBSTONE: 1}


@pytest.mark.parametrize(("expire_below", "expected"), [(1, "a=∅@1"), (2, "")])
def test_expiry_is_by_offset(expire_below, expected):
    """C18."""
    assert left("a=1 a=∅", tombstones_expire_below=expire_below) == expected


def test_a_tombstone_for_a_key_never_seen_is_kept_and_aged_alike():
    """C22."""
    assert left("a=∅ b=1") == "a=∅@0 b=1@1"
    assert left("a=∅ b=1", tombstones_expire_below=1) == "b=1@1"


def test_a_newer_record_removes_a_tombstone_at_once():
    """C22: as superseded, not as expired."""
    assert left("a=∅ a=1") == "a=1@1"
    assert losers("a=∅ a=1", tombstones_expire_below=2) == {Cause.SUPERSEDED: 1}


def test_a_value_below_the_expiry_is_no_tombstone():
    """C18."""
    assert left("a=1 b=∅", tombstones_expire_below=2) == "a=1@0"


@pytest.mark.parametrize(("empty_is_tombstone", "expected"), [(False, "a=''@1"), (True, "")])
def test_an_empty_value_is_a_value_unless_the_topic_says_otherwise(empty_is_tombstone, expected):
    """C17."""
    assert left("a=1 a=''", empty_is_tombstone=empty_is_tombstone, tombstones_expire_below=2) == expected


def test_records_below_the_log_start_go_and_beat_nothing():
    """C4: they are out of the log; each loser is counted under the first cause that applies."""
    assert left("a=1 ·=2 b=3 a=4", log_start=2) == "b=3@2 a=4@3"
    assert losers("a=1 ·=2 b=3 a=4", log_start=2) == {Cause.BELOW_START: 2}


def test_keys_counts_those_that_had_a_winner():
    """C42: also those whose winner is an expired tombstone."""
    records = a_log("a=1 a=∅ b=2 ·=3").records
    assert survivors(records, some_rules(4, tombstones_expire_below=2)).keys == 2


def test_an_empty_log_leaves_nothing():
    """C4."""
    assert survivors([], some_rules(0)).records == ()


def test_a_record_without_an_offset_is_refused():
    """C1: offsets are what the rules stand on."""
    with pytest.raises(ValueError, match="without an offset"):
        survivors([Record(b"a", b"1")], some_rules(1))
