"""Every verb under a clock that is ahead and then right again: no time that it stored holds anything up (C46).

A clock that is less than two years ahead cannot be told from a right one, so all verbs go by it. Once it is right and a
person has said so, no stored time is still to come, whatever stores it; tombstones go when they may, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import LithifyError
from lithify.model.record import Record
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.clock_check import trust_clock
from support.topics.memory_topic import ORDERS, MemoryTopic

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
OF_RECORDS = {"timestamp_ms", "oldest_dirty_timestamp_ms", "aged_before_ms"}
"""Times that producers gave, and what retention has dropped by them."""

VERBS: dict[str, Callable[[MemoryTopic], object]] = {
    "append": lambda topic: topic.append([Record(b"k", b"v", 0, partition=0), Record(b"k", None, 0, partition=0)]),
    "delete": lambda topic: topic.append([Record(b"l", None, 0, partition=1)]),
    "compact": lambda topic: topic.compact(),
    "retain": lambda topic: retain(topic.warehouse, ORDERS),
    "undo": lambda topic: undo(topic.warehouse, ORDERS),
    "uncompact": lambda topic: uncompact(topic.warehouse, ORDERS),
    "delete records": lambda topic: delete_records(topic.warehouse, ORDERS, 0, 1),
    "truncate": lambda topic: truncate(topic.warehouse, ORDERS, 1, 1, below_compacted=True),
    "side by side": lambda topic: alter(topic.warehouse, ORDERS, {"compaction.mode": "side-by-side"}),
    "more partitions": lambda topic: alter(topic.warehouse, ORDERS, {}, partitions=3),
    "expire": lambda topic: expire_versions(topic.warehouse, ORDERS),
    "sweep": lambda topic: sweep(topic.warehouse, ORDERS, delete=True),
    "trust": lambda topic: trust_clock(topic.warehouse, ORDERS),
}
some_verbs = st.lists(st.sampled_from(sorted(VERBS)), max_size=8)


def do(topic: MemoryTopic, verbs: Sequence[str]) -> None:
    for verb in verbs:
        topic.clock.advance(HOUR_MS // 10)
        with suppress(LithifyError):
            VERBS[verb](topic)


def times_in(value: Any, path: str = "state") -> Iterator[tuple[str, int]]:
    """Every stored time, by where it is."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name != "settings" and field.name not in OF_RECORDS:
                yield from times_in(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from times_in(item, f"{path}[{number}]")
    elif path.endswith("_ms") and value is not None:
        yield path, value


@given(some_verbs, some_verbs, some_verbs, st.sampled_from([HOUR_MS, 23 * HOUR_MS, 300 * DAY_MS]))
def test_no_time_to_come_is_left_and_tombstones_go_when_they_may(
    before: Sequence[str], ahead: Sequence[str], after: Sequence[str], ahead_ms: int
) -> None:
    topic = MemoryTopic(
        partitions=2,
        now_ms=1_000 * DAY_MS,
        delete_retention_ms=DAY_MS,
        min_compaction_lag_ms=HOUR_MS,
        min_compaction_lag_from="commit",
        versions_retention_ms=DAY_MS,
        sweep_grace_ms=HOUR_MS,
        message_timestamp_after_max_ms=10**15,
    )
    do(topic, before)
    topic.clock.advance(ahead_ms)
    do(topic, ahead)
    topic.clock.advance(-ahead_ms)
    now_ms = topic.clock.now_ms()
    to_come = [sum(step.tombstones for step in log.steps if step.time_ms > now_ms) for log in topic.state.logs]
    trust_clock(topic.warehouse, ORDERS)
    stored = [*times_in(topic.state), *times_in(topic.store.versions(ORDERS), "versions")]
    assert [time for time in stored if time[1] > now_ms] == []

    topic.clock.advance(DAY_MS - 1)
    topic.compact()
    left = [log.tombstones for log in topic.state.logs]
    assert all(now >= then for now, then in zip(left, to_come, strict=True)), (left, to_come)

    do(topic, after)
    topic.clock.advance(2 * HOUR_MS)
    topic.compact()
    topic.clock.advance(DAY_MS)
    topic.compact()
    assert not any(log.tombstones for log in topic.state.logs)
