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


BY_TIME = {"strategy": "timestamp"}
BY_HEADER = {"strategy": "header", "order_header": "v"}


def round_of(text, **rules):
    """The outcome of a round over the log of `text`, up to its end unless `horizon` is among the rules."""
    records = a_log(text).records
    return survivors(records, some_rules(rules.pop("horizon", len(records)), **rules))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1!9 a=2!5 a=3!7", "a=1@0"),
        ("a=1!5 a=2!9 a=3!7", "a=2@1"),
        ("a=1!9 a=2!9 b=3!9 a=4!8", "a=2@1 b=3@2"),
        ("a=1!-5 a=2!-7", "a=1@0"),
        ("a=1!0 a=2!-1", "a=1@0"),
    ],
)
def test_the_highest_timestamp_of_a_key_wins(text, expected):
    """C10: of equal ones the highest offset, late records or not."""
    assert left(text, **BY_TIME) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1!1#9 a=2!2#5 a=3!3#7", "a=1@0"),
        ("a=1#5 a=2#5", "a=2@1"),
        ("a=1#-9223372036854775808 a=2", "a=1@0"),
        ("a=1#5 a=2#seven77 a=3", "a=1@0"),
        ("a=1#x a=2 a=3#seven77", "a=3@2"),
        ("a=1#-2 a=2#-1 a=3#-3", "a=2@1"),
        ("a=1#256 a=2#255", "a=1@0"),
    ],
)
def test_the_highest_order_in_the_header_wins(text, expected):
    """C10: signed and big-endian; a record without one loses to any that has it, and among its like by offset."""
    assert left(text, **BY_HEADER) == expected


def test_strategies_do_not_mix():
    """C9, C10: headers do not matter by time, nor timestamps by header, nor either by offset."""
    text = "a=1!5#5 a=2!9#1 a=3!1#3"
    assert [left(text, **rules) for rules in ({}, BY_TIME, BY_HEADER)] == ["a=3@2", "a=2@1", "a=1@0"]


def test_an_older_tombstone_does_not_delete_a_newer_value():
    """C11: it competes like any record, and goes as one that lost."""
    outcome = round_of("a=1!9 a=∅!5 b=1!1 b=∅!1", **BY_TIME)
    assert draw([outcome.records]) == "a=1@0 b=∅@3"
    assert outcome.losers == {Cause.SUPERSEDED: 2}


def test_a_tombstone_with_the_highest_order_deletes_what_came_later():
    """C11."""
    assert left("a=∅#9 a=1#5 a=2", **BY_HEADER) == "a=∅@0"
    assert left("a=∅#9 a=1#5 a=2", **BY_HEADER, tombstones_expire_below=1) == ""


def test_a_tombstone_without_the_order_header_loses_and_is_counted():
    """C11: one that wins among its like is not, nor one that a higher order beats."""
    outcome = round_of("a=1#0 a=∅ b=1 b=∅ c=1#2 c=∅#1 a=∅#x", **BY_HEADER)
    assert draw([outcome.records]) == "a=1@0 b=∅@3 c=1@4"
    assert outcome.tombstones_unversioned == 2
    assert round_of("a=1 a=∅ a=2", **BY_TIME).tombstones_unversioned == 0


def test_an_expired_tombstone_waits_for_what_it_beats_above_the_horizon():
    """C20: under C10 a late record of lower order waits there; the tombstone is what deletes it."""
    outcome = round_of("a=∅!9 b=∅!9 a=1!5", horizon=2, tombstones_expire_below=2, **BY_TIME)
    assert draw([outcome.records]) == "a=∅@0"
    assert (outcome.held, outcome.losers) == ((0,), {Cause.EXPIRED_TOMBSTONE: 1})


@pytest.mark.parametrize(
    ("waiting", "held"), [("a=1!9", ()), ("a=1!10", ()), ("a=1!8", (0,)), ("a=1!10 a=2!8", (0,)), ("·=1!1 b=1!1", ())]
)
def test_only_what_it_beats_holds_a_tombstone(waiting, held):
    """C20, C10: one of the same order beats it, its offset being higher; other keys and keyless ones do not count."""
    outcome = round_of(f"a=∅!9 {waiting}", horizon=1, tombstones_expire_below=1, **BY_TIME)
    assert outcome.held == held


def test_nothing_that_waits_holds_a_tombstone_by_offset():
    """C20: there it beats nothing above it."""
    assert left("a=∅!9 a=1!5", horizon=1, tombstones_expire_below=1) == ""


def test_a_tombstone_that_has_not_expired_is_not_called_held():
    """C20: it stays for its age."""
    outcome = round_of("a=∅!9 a=1!5", horizon=1, **BY_TIME)
    assert (draw([outcome.records]), outcome.held) == ("a=∅@0", ())


def test_a_tombstone_that_lost_goes_whatever_waits():
    """C20, C11."""
    outcome = round_of("a=1!9 a=∅!7 a=2!5", horizon=2, tombstones_expire_below=2, **BY_TIME)
    assert (draw([outcome.records]), outcome.held) == ("a=1@0", ())


def test_unordered_records_that_wait_are_beaten_by_any_order():
    """C20, C10."""
    outcome = round_of("a=∅#-5 b=∅ a=1 b=1", horizon=2, tombstones_expire_below=2, **BY_HEADER)
    assert (draw([outcome.records]), outcome.held) == ("a=∅@0", (0,))


def test_after_a_tombstone_has_gone_a_late_record_is_a_new_one():
    """C22: what it would have beaten comes to stay."""
    once = round_of("a=1!5 a=∅!9", tombstones_expire_below=2, **BY_TIME)
    assert once.records == ()
    late = Record(b"a", b"late", 7, (), 0, 2)
    assert survivors([late], some_rules(3, **BY_TIME)).records == (late,)


def test_values_past_retention_go_after_winners_were_found():
    """C24: superseded ones go as such, an old value never comes back, tombstones stay for their age."""
    outcome = round_of("a=1!50 a=2!10 b=3!49 c=4!50 d=∅!1", values_expire_before_ms=50)
    assert draw([outcome.records]) == "c=4@3 d=∅@4"
    assert outcome.losers == {Cause.SUPERSEDED: 1, Cause.PAST_RETENTION: 2}


def test_what_has_the_age_of_the_retention_is_not_past_it():
    """C24."""
    assert left("a=1!50", values_expire_before_ms=50) == "a=1@0"
    assert left("a=1!49", values_expire_before_ms=50) == ""


def test_retained_keyless_records_age_like_values():
    """C24, C16: also with a null value, which deletes nothing."""
    outcome = round_of("·=1!49 ·=∅!49 ·=2!50", keep_keyless=True, values_expire_before_ms=50)
    assert draw([outcome.records]) == "·=2@2"
    assert outcome.losers == {Cause.PAST_RETENTION: 2}
    assert round_of("·=1!49", values_expire_before_ms=50).losers == {Cause.NO_KEY: 1}


def test_an_old_winner_by_timestamp_takes_its_key_along():
    """C24, C10: the newest by offset is older still."""
    assert left("a=1!40 a=2!10 b=1!60 b=2!5", values_expire_before_ms=50, **BY_TIME) == "b=1@2"


def test_an_empty_tombstone_is_no_value_that_ages():
    """C24, C17."""
    assert left("a=''!1", values_expire_before_ms=50, empty_is_tombstone=True) == "a=''@0"
    assert left("a=''!1", values_expire_before_ms=50) == ""
