"""What a real Kafka cleaner left, replayed (C1, C4, C9, C12, C14, C16, C17, C18, C22).

Before every round the log gets what Kafka had below its active segment and below its last stable
offset: one append per Kafka segment, offsets kept, committed records only. The round runs with the
clock of Kafka's, and what is left below must be what Kafka left, but for `DIFFERENCES`.

Each case runs on the core alone and through the services over the memory store.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lithify.model.record import Record
from support.builders import some_settings
from support.memory_topic import MemoryTopic
from support.pure_rounds import PureLog

DATA = Path(__file__).parent / "data"
CASES = {path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))}

SETTINGS = {
    "cleanup.policy": "compact",
    "delete.retention.ms": None,
    "min.compaction.lag.ms": None,
    "message.timestamp.after.max.ms": None,
}
"""What of Kafka's topic configuration is set here as well; the value if it is another one.

`min.cleanable.dirty.ratio` only kept Kafka's cleaner waiting, and `segment.ms` rolled its segments.
A topic with policy `delete` that became compacted is a compacted one from the start here, since this
version has no other policy; its keyless records come in by `null.key=drop`.
"""

DIFFERENCES = {
    ("empty_value", 1): (
        {3},
        "C18: with delete.retention.ms=0 a tombstone goes in the round that covers it; Kafka needs a second one",
    ),
}
"""By case and round: offsets that Kafka still has and we do not, and why."""


@dataclass(frozen=True)
class RecordedRound:
    """One round of a case: what comes before it, and what Kafka left."""

    number: int
    now_ms: int
    appends: tuple[tuple[Record, ...], ...]
    compared_below: int
    left: tuple[int, ...]


def recorded_rounds(case: Mapping[str, Any]) -> Iterator[RecordedRound]:
    known = {record["offset"]: record_of(record) for record in case["records"]}
    end = 0
    for number in range(1, case["rounds"] + 1):
        before = case["before" if number == 1 else f"before_round_{number}"]
        after = case[f"after_round_{number}"]
        bases = [segment["base"] for segment in before["segments"]]
        stable = min(before["active_from"], before["last_stable_offset"])
        appends = []
        for base, next_base in zip(bases, [*bases[1:], before["high_watermark"]], strict=True):
            new = [known[o] for o in before["read_committed"] if max(base, end) <= o < next_base]
            if next_base <= stable and new:
                appends.append(tuple(new))
        fed = max(base for base in [*bases, 0] if base <= stable)
        compared_below = min(after["first_uncleanable_offset"], fed)
        left = tuple(offset for offset in after["read_committed"] if offset < compared_below)
        yield RecordedRound(number, after["round_now_ms"], tuple(appends), compared_below, left)
        end = fed


def record_of(data: Mapping[str, Any]) -> Record:
    def decoded(text: str | None) -> bytes | None:
        return None if text is None else b64decode(text)

    return Record(
        key=decoded(data["key_b64"]),
        value=decoded(data["value_b64"]),
        timestamp=data["timestamp"],
        headers=tuple((name, decoded(value)) for name, value in data["headers"]),
        partition=data["partition"],
        offset=data["offset"],
        timestamp_type=data["timestamp_type"],
    )


def config_of(case: Mapping[str, Any]) -> dict[str, object]:
    given = {name: SETTINGS[name] or value for name, value in case["topic_config"].items() if name in SETTINGS}
    return {name.replace(".", "_"): value for name, value in {**given, "null.key": "drop"}.items()}


def on_the_core(case: Mapping[str, Any]) -> Callable[[RecordedRound], list[Record]]:
    log, settings = PureLog(), some_settings(**config_of(case))

    def play(recorded: RecordedRound) -> list[Record]:
        for records in recorded.appends:
            log.append(records)
        log.round(settings, recorded.now_ms)
        return list(log.contents)

    return play


def on_the_services(case: Mapping[str, Any]) -> Callable[[RecordedRound], list[Record]]:
    topic = MemoryTopic(**config_of(case))

    def play(recorded: RecordedRound) -> list[Record]:
        topic.clock.set(recorded.now_ms)
        for records in recorded.appends:
            topic.append(records, keep_offsets=True)
        assert topic.compact().failed == ()
        return topic.records()

    return play


@pytest.mark.parametrize("replay", [on_the_core, on_the_services])
@pytest.mark.parametrize("name", CASES)
def test_what_is_left_is_what_kafka_left(name, replay):
    case = CASES[name]
    known = {record["offset"]: record_of(record) for record in case["records"]}
    play = replay(case)
    for recorded in recorded_rounds(case):
        only_kafka, _reason = DIFFERENCES.get((name, recorded.number), (set(), ""))
        left = [r for r in play(recorded) if (r.offset or 0) < recorded.compared_below]
        assert [r.offset for r in left] == [o for o in recorded.left if o not in only_kafka], recorded.number
        assert left == [known[r.offset] for r in left]  # C1: to the byte
        assert only_kafka <= set(recorded.left)  # a difference that is none is not listed


def test_no_case_is_left_out():
    """The fifteen that were recorded, and every round of them."""
    assert len(CASES) == 15
    assert sum(len(list(recorded_rounds(case))) for case in CASES.values()) == 30
    assert {(name, number) for name, case in CASES.items() for number in range(1, case["rounds"] + 1)} >= set(
        DIFFERENCES
    )


def test_the_horizon_is_kafkas_own():
    """C14: `min.compaction.lag.ms` holds back what it holds back in Kafka, by the same clock."""
    case = CASES["min_lag"]
    topic = MemoryTopic(**config_of(case))
    for recorded in recorded_rounds(case):
        topic.clock.set(recorded.now_ms)
        for records in recorded.appends:
            topic.append(records, keep_offsets=True)
        log = topic.compact().logs[0]
        assert log.horizon == case[f"after_round_{recorded.number}"]["first_uncleanable_offset"]
        assert log.horizon_limited_by == ("min.compaction.lag.ms" if recorded.number == 1 else "log end")


def test_keyless_records_are_counted_as_kafka_counts_them():
    """C16."""
    case = CASES["null_key_purged"]
    topic = MemoryTopic(**config_of(case))
    (recorded,) = recorded_rounds(case)
    for records in recorded.appends:
        topic.append(records, keep_offsets=True)
    assert topic.compact(recorded.now_ms).logs[0].losers.no_key == case["after_round_1"]["invalid_messages"]


def test_tombstones_go_without_new_data():
    """C21: where we differ from Kafka on purpose; it would keep this one until something is appended."""
    case = CASES["tombstone_beyond"]
    topic = MemoryTopic(**config_of(case))
    first, *_ = recorded_rounds(case)
    for records in first.appends:
        topic.append(records, keep_offsets=True)
    topic.compact(first.now_ms)
    (tombstone,) = [r.offset for r in topic.records() if r.value is None]
    retention_ms = topic.state.settings.delete_retention_ms
    assert tombstone in [r.offset for r in topic.records()]
    assert not topic.compact(first.now_ms + retention_ms - 1).changed
    assert topic.compact(first.now_ms + retention_ms).changed
    assert tombstone not in [r.offset for r in topic.records()]
