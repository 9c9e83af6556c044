"""The oracle itself, case by case: what one round leaves of one log (C1, C4, C9 to C18, C20, C22, C24, C53)."""

from __future__ import annotations

import pytest

from lithify.model.record import Record
from lithify.model.settings.table import ByColumn, ByHeader
from lithify.rules.compaction.survivor_rules import Cause
from lithify.rules.compaction.survivors import Survivors, survivors
from support.builders import a_log, draw, some_rules
from support.tables import cases_of

TIME = {"order": ByColumn("timestamp")}
HEADER = {"order": ByHeader("v")}
RETAINED = {"keep_keyless": True}
EMPTY_DELETES = {"empty_is_tombstone": True}
AGED = {"values_expire_before_ms": 50}


def expire(below: int) -> dict[str, object]:
    return {"tombstones_expire_below": below}


def up_to(horizon: int, **rules: object) -> dict[str, object]:
    return {"horizon": horizon, **rules}


HORIZON_AT_1 = up_to(1, **expire(1), **TIME)

CASES: dict[str, list[tuple[str, dict[str, object], str, str]]] = {
    "C9: the highest offset of a key wins, whatever the timestamps": [
        ("a=1 b=2 a=3 | b=4 c=5", {}, "a=3@2 b=4@3 c=5@4", "2 superseded"),
        ("a=1!900 a=2!100", {}, "a=2@1", "1 superseded"),
        ("", {}, "", ""),
    ],
    "C10: the highest timestamp wins, and of equal ones the highest offset": [
        ("a=1!9 a=2!5 a=3!7", TIME, "a=1@0", "2 superseded"),
        ("a=1!5 a=2!9 a=3!7", TIME, "a=2@1", "2 superseded"),
        ("a=1!9 a=2!9 b=3!9 a=4!8", TIME, "a=2@1 b=3@2", "2 superseded"),
        ("a=1!-5 a=2!-7", TIME, "a=1@0", "1 superseded"),
        ("a=1!0 a=2!-1", TIME, "a=1@0", "1 superseded"),
    ],
    "C10: the highest number in the header wins; it is signed and big-endian, and any is above none": [
        ("a=1!1#9 a=2!2#5 a=3!3#7", HEADER, "a=1@0", "2 superseded"),
        ("a=1#5 a=2#5", HEADER, "a=2@1", "1 superseded"),
        ("a=1#-9223372036854775808 a=2", HEADER, "a=1@0", "1 superseded"),
        ("a=1#5 a=2#seven77 a=3", HEADER, "a=1@0", "2 superseded"),
        ("a=1#x a=2 a=3#seven77", HEADER, "a=3@2", "2 superseded"),
        ("a=1#-2 a=2#-1 a=3#-3", HEADER, "a=2@1", "2 superseded"),
        ("a=1#256 a=2#255", HEADER, "a=1@0", "1 superseded"),
    ],
    "C9, C10: strategies do not mix": [
        ("a=1!5#5 a=2!9#1 a=3!1#3", {}, "a=3@2", "2 superseded"),
        ("a=1!5#5 a=2!9#1 a=3!1#3", TIME, "a=2@1", "2 superseded"),
        ("a=1!5#5 a=2!9#1 a=3!1#3", HEADER, "a=1@0", "2 superseded"),
    ],
    "C11: a tombstone competes like any record": [
        ("a=1!9 a=∅!5 b=1!1 b=∅!1", TIME, "a=1@0 b=∅@3", "2 superseded"),
        ("a=∅#9 a=1#5 a=2", HEADER, "a=∅@0", "2 superseded"),
        ("a=∅#9 a=1#5 a=2", HEADER | expire(1), "", "2 superseded, 1 expired_tombstone"),
    ],
    "C11: a tombstone without the order header that loses for that is counted": [
        (
            "a=1#0 a=∅ b=1 b=∅ c=1#2 c=∅#1 a=∅#x",
            HEADER,
            "a=1@0 b=∅@3 c=1@4",
            "4 superseded, 2 unversioned",
        ),
        ("a=1 a=∅ a=2", TIME, "a=2@2", "2 superseded"),
    ],
    "C12: keys are exact bytes; an empty key is one": [
        ("''=1 a=2 aa=3 A=4 ''=5", {}, "a=2@1 aa=3@2 A=4@3 ''=5@4", "1 superseded"),
    ],
    "C14: what is at or above the horizon beats nothing below": [
        ("a=1 b=2 | a=3", up_to(2), "a=1@0 b=2@1", ""),
    ],
    "C16: keyless records go, or stay and beat nothing; none is a tombstone": [
        ("·=1 a=2 ·=∅", {}, "a=2@1", "2 no_key"),
        ("·=1 ·=2 ''=3", RETAINED, "·=1@0 ·=2@1 ''=3@2", ""),
        ("·=∅ a=1", RETAINED | expire(2), "·=∅@0 a=1@1", ""),
    ],
    "C17: an empty value deletes only where the topic says so": [
        ("a=1 a=''", expire(2), "a=''@1", "1 superseded"),
        ("a=1 a=''", EMPTY_DELETES | expire(2), "", "1 superseded, 1 expired_tombstone"),
    ],
    "C18, C20: a tombstone stays until it has expired, and takes along what it beats": [
        ("a=1 a=∅", {}, "a=∅@1", "1 superseded"),
        ("a=1 a=∅", expire(1), "a=∅@1", "1 superseded"),
        ("a=1 a=∅", expire(2), "", "1 superseded, 1 expired_tombstone"),
        ("a=1 a=∅ b=2", expire(2), "b=2@2", "1 superseded, 1 expired_tombstone"),
        ("a=1 b=∅", expire(2), "a=1@0", "1 expired_tombstone"),
    ],
    "C20: an expired tombstone stays while a record that it beats waits above the horizon": [
        ("a=∅!9 b=∅!9 a=1!5", up_to(2, **expire(2), **TIME), "a=∅@0", "1 expired_tombstone, held 0"),
        ("a=∅!9 a=1!8", HORIZON_AT_1, "a=∅@0", "held 0"),
        ("a=∅!9 a=1!10 a=2!8", HORIZON_AT_1, "a=∅@0", "held 0"),
        ("a=∅!9 a=1!9", HORIZON_AT_1, "", "1 expired_tombstone"),
        ("a=∅!9 a=1!10", HORIZON_AT_1, "", "1 expired_tombstone"),
        ("a=∅!9 ·=1!1 b=1!1", HORIZON_AT_1, "", "1 expired_tombstone"),
        ("a=∅!9 a=1!5", up_to(1, **expire(1)), "", "1 expired_tombstone"),  # by offset it beats nothing above
        ("a=∅!9 a=1!5", up_to(1, **TIME), "a=∅@0", ""),  # stays for its age, and is not held
        ("a=1!9 a=∅!7 a=2!5", up_to(2, **expire(2), **TIME), "a=1@0", "1 superseded"),
        ("a=∅#-5 b=∅ a=1 b=1", up_to(2, **expire(2), **HEADER), "a=∅@0", "1 expired_tombstone, held 0"),
    ],
    "C22: a tombstone of a key that was never there ages alike, and a newer record removes it at once": [
        ("a=∅ b=1", {}, "a=∅@0 b=1@1", ""),
        ("a=∅ b=1", expire(1), "b=1@1", "1 expired_tombstone"),
        ("a=∅ a=1", expire(2), "a=1@1", "1 superseded"),
    ],
    "C24: a value past retention goes after winners were found, so that no older one comes back": [
        ("a=1!50 a=2!10 b=3!49 c=4!50 d=∅!1", AGED, "c=4@3 d=∅@4", "1 superseded, 2 past_retention"),
        ("a=1!40 a=2!10 b=1!60 b=2!5", AGED | TIME, "b=1@2", "2 superseded, 1 past_retention"),
        ("a=''!1", AGED | EMPTY_DELETES, "a=''@0", ""),
        ("a=''!1", AGED, "", "1 past_retention"),
    ],
    "C24, C16: retained keyless records age like values": [
        ("·=1!49 ·=∅!49 ·=2!50", AGED | RETAINED, "·=2@2", "2 past_retention"),
        ("·=1!49", AGED, "", "1 no_key"),
    ],
    "C53: no tombstone expires while a whole entry stays; what is superseded goes, and the entry stays": [
        ("□=x a=1 a=∅", expire(3), "□=x@0 a=∅@2", "1 superseded"),
        ("a=∅ □=x", expire(2), "a=∅@0 □=x@1", ""),
        ("a=∅ □=x a=1", expire(2), "□=x@1 a=1@2", "1 superseded"),
        ("·=x a=∅", expire(2) | RETAINED, "·=x@0", "1 expired_tombstone"),
    ],
    "C53: an entry that goes in the round hides nothing": [
        ("□=x a=∅", expire(2) | {"log_start": 1}, "", "1 below_start, 1 expired_tombstone"),
        ("□=x!49 a=∅", expire(2) | AGED, "", "1 expired_tombstone, 1 past_retention"),
        ("□=x!50 a=∅!49", expire(2) | AGED, "□=x@0 a=∅@1", ""),
    ],
    "C53, C20: one above the horizon counts where a tombstone may beat it": [
        ("a=∅ □=x", up_to(1, **expire(1)), "", "1 expired_tombstone"),
        ("a=∅ □=x", up_to(1, **expire(1), **TIME, **AGED), "a=∅@0", ""),
    ],
    "C53: a chunk holds the tombstones of its key alone, wherever below the horizon it is": [
        ("□a=x a=∅ b=∅", expire(3), "□a=x@0 a=∅@1", "1 expired_tombstone, held 1"),
        ("a=∅ □a=x b=∅", expire(3), "a=∅@0 □a=x@1", "1 expired_tombstone, held 0"),
        ("□a=x a=1!9 a=∅!8", expire(3) | TIME, "□a=x@0 a=1@1", "1 superseded"),
        ("□''=x ''=∅ a=∅", expire(3), "□''=x@0 ''=∅@1", "1 expired_tombstone, held 1"),
        ("□a=x a=∅ a=1", expire(3), "□a=x@0 a=1@2", "1 superseded"),
        ("□·=x a=∅", expire(2), "□·=x@0", "1 expired_tombstone"),
        ("□a=x a=∅ b=∅ □=x", expire(4), "□a=x@0 a=∅@1 b=∅@2 □=x@3", ""),
        ("□a=x b=1 a=∅", {}, "□a=x@0 b=1@1 a=∅@2", ""),
    ],
    "C53: a chunk that goes in the round holds nothing": [
        ("□a=x a=∅", expire(2) | {"log_start": 1}, "", "1 below_start, 1 expired_tombstone"),
        ("□a=x!49 a=∅", expire(2) | AGED, "", "1 expired_tombstone, 1 past_retention"),
    ],
    "C53, C20: above the horizon a chunk is a record of its key": [
        ("a=∅ □a=x", up_to(1, **expire(1)), "", "1 expired_tombstone"),
        ("a=∅!9 □a=x!8", HORIZON_AT_1, "a=∅@0", "held 0"),
        ("a=∅!9 □a=x!9", HORIZON_AT_1, "", "1 expired_tombstone"),
        ("a=∅!9 □b=x!8", HORIZON_AT_1, "", "1 expired_tombstone"),
    ],
    "C53: a table has no entries, and no deletes": [
        ("□=x a=∅ b=1", expire(3) | {"keep_passed_through": False}, "b=1@2", "1 no_key, 1 expired_tombstone"),
    ],
    "C26: records below the log start go, counted as such, and beat nothing": [
        ("a=1 ·=2 b=3 a=4", {"log_start": 2}, "b=3@2 a=4@3", "2 below_start"),
        ("a=1!9 a=2!5", {"log_start": 1, **TIME}, "a=2@1", "1 below_start"),
    ],
}


def round_over(text: str, **rules: object) -> Survivors:
    """A round over the log of `text`, up to its end unless `horizon` is among the rules."""
    records = a_log(text).records
    return survivors(records, some_rules(**{"horizon": len(records)} | rules))


def told(found: Survivors) -> str:
    """What went by cause, and which tombstones were held or had no order."""
    parts = [f"{found.losers[cause]} {cause}" for cause in Cause if cause in found.losers]
    parts += [f"held {offset}" for offset in found.held]
    return ", ".join(parts + [f"{found.tombstones_unversioned} unversioned"] * (found.tombstones_unversioned > 0))


@pytest.mark.parametrize(
    ("text", "rules", "left", "said"),
    cases_of(CASES),
)
def test_what_a_round_leaves_and_why_the_others_go(text, rules, left, said):
    found = round_over(text, **rules)
    assert (draw([found.records]), told(found)) == (left, said)


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


def test_keys_counts_those_that_had_a_winner():
    """C42: also those whose winner is an expired tombstone."""
    assert round_over("a=1 a=∅ b=2 ·=3", **expire(2)).keys == 2


def test_a_record_without_an_offset_is_refused():
    """C1: offsets are what the rules stand on."""
    with pytest.raises(ValueError, match="without an offset"):
        survivors([Record(b"a", b"1")], some_rules(1))
