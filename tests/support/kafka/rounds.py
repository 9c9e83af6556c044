"""What a real Kafka cleaner left, recorded or just now, and the same rounds done by us (C1, C4, C9).

Before every round the log gets what Kafka had below its active segment and below its last stable
offset: one append per Kafka segment, offsets kept, committed records only. The round runs with the
clock of Kafka's.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lithify.model.record import Record
from support.builders import some_settings
from support.topics.memory_topic import MemoryTopic
from support.topics.pure_rounds import PureLog

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


@dataclass(frozen=True)
class RecordedRound:
    """One round: what comes before it, and what Kafka left."""

    number: int
    now_ms: int
    appends: tuple[tuple[Record, ...], ...]
    compared_below: int
    left: tuple[int, ...]
    fed: int
    """Where our log ends then, or would if nothing of it were compacted in Kafka."""


def recorded_rounds(case: Mapping[str, Any]) -> Iterator[RecordedRound]:
    known = {record["offset"]: record_of(record) for record in case["records"]}
    end = 0
    for number in range(1, case["rounds"] + 1):
        before = case["before" if number == 1 else f"before_round_{number}"]
        recorded = round_between(number, before, case[f"after_round_{number}"], known, end)
        yield recorded
        end = recorded.fed


def round_between(
    number: int, before: Mapping[str, Any], after: Mapping[str, Any], known: Mapping[int, Record], end: int
) -> RecordedRound:
    """A round, from what Kafka had before and after it. Our log ends at `end`; `known` are records by offset."""
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
    return RecordedRound(number, after["round_now_ms"], tuple(appends), compared_below, left, fed)


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
