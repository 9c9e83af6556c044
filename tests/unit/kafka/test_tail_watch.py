"""Whether a consumer that continues in Kafka may have missed deletes (C71), with what it is told of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lithify.errors import BrokerError, SourceLostError
from lithify.kafka.consumer.tail_watch import TailWatch
from lithify.model.names import TopicName
from lithify.model.sources.ends import KnownEnds, SourceEnd
from lithify.model.topic.log import LogState
from lithify.testing.fake_clock import FakeClock

DAY_MS = 86_400_000
NOW = 100 * DAY_MS


@dataclass
class Told:
    """What a cluster answers."""

    end: int = 10
    config: dict[str, str] = field(
        default_factory=lambda: {"cleanup.policy": "compact", "delete.retention.ms": str(DAY_MS)}
    )
    refuses: bool = False
    takes: Callable[[], None] = lambda: None
    """What happens before an answer arrives."""

    def topic_config(self, _topic: str) -> dict[str, str]:
        self.takes()
        if self.refuses:
            raise BrokerError("no right to ask")
        return self.config


def watch_of(told: Told, clock: FakeClock) -> TailWatch:
    cluster: Any = told

    def stable_end(_partition: int) -> int:
        end = told.end
        told.takes()
        return end

    return TailWatch(cluster, "orders", TopicName("default", "orders"), clock, stable_end)


def copied(offset: int, ago_ms: int) -> dict[int, KnownEnds]:
    return {0: KnownEnds((SourceEnd(offset, NOW - ago_ms, DAY_MS),))}


def test_it_begins_where_the_copy_was_read_to_the_end_lately() -> None:
    watch = watch_of(Told(), FakeClock(NOW))
    watch.learn(copied(5, DAY_MS // 2))
    assert watch.begin(0, 5, 10, NOW, anew=False) is None
    late = watch_of(Told(), FakeClock(NOW))
    late.learn(copied(5, DAY_MS))
    assert "deletes from offset 5 on may be missing" in str(late.begin(0, 5, 10, NOW, anew=False))
    assert late.begin(0, 10, 10, NOW, anew=False) is None  # nothing to read


def test_a_consumer_that_was_paused_for_too_long_is_told() -> None:
    clock, told = FakeClock(NOW), Told()
    watch = watch_of(told, clock)
    assert watch.begin(0, 10, 10, NOW, anew=False) is None
    clock.advance(DAY_MS // 2)
    watch.check_read({0: (10, 12)})
    clock.advance(DAY_MS // 2)
    with pytest.raises(SourceLostError, match="deletes from offset 10 on"):
        watch.check_read({0: (10, 12)})


def test_one_that_waits_at_the_end_is_never_late() -> None:
    clock, told = FakeClock(NOW), Told()
    watch = watch_of(told, clock)
    watch.begin(0, 10, 10, NOW, anew=False)
    for _ in range(50):
        clock.advance(DAY_MS // 10)
        watch.look({0: 10})
    told.end = 12
    watch.check_read({0: (10, 12)})
    assert watch.missed(0, 10, 12, clock.now_ms() + DAY_MS) is not None


@pytest.mark.parametrize("looks", [False, True])
def test_an_answer_that_takes_long_is_as_old_as_its_question(looks: bool) -> None:
    """A delete may come and go while it is on its way."""
    clock, told = FakeClock(NOW), Told()
    watch = watch_of(told, clock)
    if looks:
        assert watch.begin(0, 10, 10, NOW, anew=False) is None
        clock.advance(DAY_MS // 10)
    if looks:
        told.takes = lambda: clock.advance(DAY_MS)
        watch.look({0: 10})
    else:
        clock.advance(DAY_MS)
        assert watch.begin(0, 10, 10, NOW, anew=False) is None
    with pytest.raises(SourceLostError, match="deletes from offset 10 on"):
        watch.check_read({0: (10, 12)})


def test_one_that_begins_at_the_start_of_the_log_is_as_any_consumer() -> None:
    clock = FakeClock(NOW)
    watch = watch_of(Told(), clock)
    watch.learn(copied(0, 9 * DAY_MS))
    assert watch.begin(0, 0, 10, NOW, anew=True) is None
    clock.advance(DAY_MS)
    with pytest.raises(SourceLostError):
        watch.check_read({0: (0, 10)})


def test_without_the_right_to_ask_what_the_ingest_was_told_counts() -> None:
    watch = watch_of(Told(refuses=True), FakeClock(NOW))
    watch.learn({0: KnownEnds((SourceEnd(5, NOW - 1_000, 500),))})
    assert watch.begin(0, 5, 10, NOW, anew=False) is not None
    unknown = watch_of(Told(refuses=True), FakeClock(NOW))
    assert unknown.begin(0, 5, 10, NOW, anew=False) is None
    assert unknown.missed(0, 5, 10, NOW + DAY_MS) is not None


def test_the_newer_of_what_two_have_seen_counts() -> None:
    watch = watch_of(Told(), FakeClock(NOW))
    watch.learn(copied(5, 9 * DAY_MS))
    watch.learn(copied(4, 1_000))
    watch.learn(copied(7, 5 * DAY_MS))
    assert watch.known[0].ends == (SourceEnd(4, NOW - 1_000, DAY_MS),)
    assert watch.begin(0, 7, 10, NOW, anew=False) is None


def test_a_topic_that_is_not_compacted_drops_no_deletes() -> None:
    clock = FakeClock(NOW)
    watch = watch_of(Told(config={"cleanup.policy": "delete", "delete.retention.ms": "1"}), clock)
    watch.begin(0, 5, 10, NOW, anew=False)
    clock.advance(9 * DAY_MS)
    watch.check_read({0: (5, 10)})


@pytest.mark.parametrize(
    ("own", "start", "is_late"),
    [
        (None, 0, False),  # from the beginning
        ((15, 2 * DAY_MS), 10, False),  # the deletes are at or behind 10
        ((15, 2 * DAY_MS), 15, True),
        ((15, 2 * DAY_MS), 20, False),  # it reads nothing of the copy
        ((15, DAY_MS // 2), 15, False),  # it has missed nothing yet
        ((10, 3 * DAY_MS // 2), 15, False),  # it was told since the copy began anew
    ],
)
def test_a_consumer_ahead_of_where_a_copy_began_anew_has_not_its_deletes(own: Any, start: int, is_late: bool) -> None:
    """A resync from 10 to 20 puts deletes below 15, and reads Kafka's end after them."""
    watch = watch_of(Told(end=20), FakeClock(NOW))
    if own is not None:
        watch.goes_on(copied(*own))
    watch.learn(copied(20, 1_000))
    log = LogState(0, log_end_offset=20, source_begun=(10, NOW - 3 * DAY_MS // 2))
    if is_late:
        with pytest.raises(SourceLostError, match="deletes from offset 15 on may be missing"):
            watch.enter(0, start, log)
        return
    watch.enter(0, start, log)
    assert watch.begin(0, 20, 20, NOW, anew=False) is None


def test_one_that_read_an_empty_copy_has_nothing_of_its_first_ingest() -> None:
    clock = FakeClock(NOW - 2 * DAY_MS)
    watch = watch_of(Told(), clock)
    watch.enter(0, 0, LogState(0))
    assert watch.begin(0, 0, 10, NOW - 2 * DAY_MS, anew=True) is None
    clock.advance(2 * DAY_MS)
    watch.learn(copied(20, 1_000))
    with pytest.raises(SourceLostError, match="deletes from offset 10 on"):
        watch.enter(0, 10, LogState(0, log_end_offset=20, source_begun=(0, NOW - 2_000)))
