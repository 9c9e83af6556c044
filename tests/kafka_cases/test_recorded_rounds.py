"""What a real Kafka cleaner left, replayed (C1, C4, C9, C12, C14, C16, C17, C18, C22).

What is left below must be what Kafka left, but for `DIFFERENCES`. Each case runs on the core alone and
through the services over the memory store. `tests/kafka/` does the same with a broker that runs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.kafka.rounds import config_of, on_the_core, on_the_services, record_of, recorded_rounds
from support.topics.memory_topic import MemoryTopic

DATA = Path(__file__).parent / "data"
CASES = {path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))}

DIFFERENCES = {
    ("empty_value", 1): (
        {3},
        "C18: with delete.retention.ms=0 a tombstone goes in the round that covers it; Kafka needs a second one",
    ),
}
"""By case and round: offsets that Kafka still has and we do not, and why."""


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
