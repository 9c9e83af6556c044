"""What the long random test found or finds rarely, as short as it could be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lithify.model.record import Record
from support.checked.places import memory_place
from support.checked.reading import OpenReader, check_topic
from support.checked.round import check_round
from support.checked.sweep import check_sweep
from support.checked.topic import CheckedTopic
from support.checked.trouble import RandomPlace, Standstill


@pytest.fixture
def place() -> Iterator[RandomPlace]:
    with memory_place() as made:
        yield made


def a_record(key: bytes, value: bytes | None, timestamp: int = 1_000) -> Record:
    return Record(key, value, timestamp, partition=0)


def test_a_round_as_of_the_past_closes_its_version_now(place: RandomPlace) -> None:
    """C7: what a round with `--now` stops naming stays for its time by the clock, not by `--now`."""
    topic = CheckedTopic.create(place, 1, {"versions.retention.ms": 100, "versions.kept": 1})
    topic.append([a_record(b"a", b"1"), a_record(b"a", b"2")])
    reader = OpenReader.open(topic, 0, compacted=False)
    check_round(topic, given_ms=place.clock.now_ms() - 500)
    topic.append([a_record(b"a", b"3")])
    check_round(topic)
    check_sweep(topic)
    assert reader.read_on(1_000), "the reader was opened a moment ago"
    place.clock.advance(100)
    check_sweep(topic)
    check_topic(topic)


def test_what_the_view_has_leaves_the_backlog_in_the_same_round(place: RandomPlace) -> None:
    """C33, C41: nothing is left for a second round at the same time."""
    config = {"compaction.mode": "side-by-side", "cleanup.policy": "compact,delete", "retention.ms": 30}
    topic = CheckedTopic.create(place, 1, config)
    topic.append([a_record(b"a", b"1")])
    later_ms = place.clock.now_ms() + 31
    check_round(topic, given_ms=later_ms)
    version = topic.state.version
    check_round(topic, given_ms=later_ms)
    assert (topic.state.version, topic.model.logs[0].start) == (version, 1)
    check_topic(topic)


def test_a_tombstone_that_was_held_goes_when_the_strategy_lets_it(place: RandomPlace) -> None:
    """C18, C20, C43: what held it was judged by another strategy."""
    config = {"compaction.strategy": "timestamp", "delete.retention.ms": 30, "min.compaction.lag.ms": 15}
    topic = CheckedTopic.create(place, 1, config)
    topic.append([a_record(b"a", None, 900)])
    check_round(topic)
    topic.append([a_record(b"b", b"1", 1_100), a_record(b"a", b"0", 800)])
    place.clock.advance(40)
    check_round(topic)
    assert len(topic.model.logs[0].records) == 3, "the tombstone beats a record that waits"
    topic.alter({"compaction.strategy": "offset"})
    check_topic(topic)
    check_round(topic)
    assert [r.value for r in topic.model.logs[0].records] == [b"1", b"0"]
    check_topic(topic)


def test_undo_brings_no_deleted_record_back(place: RandomPlace) -> None:
    """C7, C26: S never goes below where records were deleted, though the round had moved it further."""
    topic = CheckedTopic.create(place, 1, {"cleanup.policy": "compact,delete", "retention.ms": 30})
    topic.append([a_record(b"a", b"1"), a_record(b"b", b"1")])
    topic.append([a_record(b"c", b"1", 1_030)])
    place.clock.advance(31)
    check_round(topic)
    topic.delete_records(0, 1)
    topic.undo()
    assert topic.model.logs[0].start == 1
    check_topic(topic)


def test_what_an_undone_round_cleared_is_required_again(place: RandomPlace) -> None:
    """C26, C43: the log was due for a changed setting as well as for what was deleted of it."""
    topic = CheckedTopic.create(place, 1, {"min.compaction.lag.ms": 15})
    topic.append([a_record(b"%d" % n, b"1") for n in range(6)])
    topic.delete_records(0, 3)
    topic.alter({"null.key": "drop"})
    check_round(topic)
    check_topic(topic)
    topic.undo()
    check_topic(topic)


DAYS_MS = 3 * 86_400_000


@pytest.mark.parametrize("at", range(1, 14))
def test_a_paused_undo_undoes_the_round_that_came_meanwhile(place: RandomPlace, at: int) -> None:
    """C6: it listed the versions after that round, and said that the one before the last was not kept any more."""
    topic = CheckedTopic.create(place, 1, {"versions.kept": 1})
    topic.append([a_record(b"a", b"1"), a_record(b"a", b"2")])
    check_round(topic)
    topic.append([a_record(b"a", b"3")])
    assert topic.undo(Standstill(at, lambda: check_round(topic)))
    check_topic(topic)


@pytest.mark.parametrize("at", range(1, 12))
def test_a_truncation_whose_files_were_swept_says_so(place: RandomPlace, at: int) -> None:
    """C45: whichever of its steps first finds a file gone, it was its own run that had expired."""
    topic = CheckedTopic.create(place, 1, {"sweep.grace.ms": 60_000})
    topic.append([a_record(b"a", b"1"), a_record(b"b", b"2")])

    def later() -> None:
        place.clock.advance(60_001)
        check_sweep(topic)

    topic.truncate(0, 1, trouble=Standstill(at, later))
    check_topic(topic)


@pytest.mark.parametrize("at", range(1, 5))
def test_a_clock_that_was_read_days_ago_is_not_behind(place: RandomPlace, at: int) -> None:
    """C46: rounds and retention that were paused may go by the time that they read."""
    topic = CheckedTopic.create(place, 1, {"cleanup.policy": "compact,delete", "retention.ms": 30})
    topic.append([a_record(b"a", b"1"), a_record(b"a", b"2")])
    topic.append([a_record(b"b", b"1")])

    def later() -> None:
        place.clock.advance(DAYS_MS)
        topic.delete_records(0, 1)

    check_round(topic, trouble=Standstill(at, later))
    check_topic(topic)
    topic.retain(trouble=Standstill(at, later))
    check_topic(topic)


@pytest.mark.parametrize("at", range(1, 9))
def test_a_batch_whose_tasks_were_swept_says_so(place: RandomPlace, at: int) -> None:
    """C45: also where what they wrote would have to be written again, as the log ends elsewhere by then."""
    topic = CheckedTopic.create(place, 1, {"sweep.grace.ms": 60_000})

    def later() -> None:
        topic.append([a_record(b"b", b"1")])
        place.clock.advance(60_001)
        check_sweep(topic)

    topic.append_staged([a_record(b"a", b"1")], 0, Standstill(at, later))
    check_topic(topic)


def test_retention_in_a_round_leaves_a_tombstone_that_is_held(place: RandomPlace) -> None:
    """C20, C33: nothing is asked again of a tombstone that the last round had to keep, up to the same horizon."""
    config = {
        "cleanup.policy": "compact,delete",
        "compaction.mode": "side-by-side",
        "compaction.strategy": "timestamp",
        "delete.retention.ms": 0,
        "retention.ms": 30,
        "min.compaction.lag.bytes": 60,
    }
    topic = CheckedTopic.create(place, 1, config)
    topic.append([a_record(b"a", None), a_record(b"a", None, 1_001)])
    topic.append([a_record(b"a", None, 900), a_record(b"a", None, 901)])
    check_round(topic)
    place.clock.advance(60)
    check_round(topic)
    check_topic(topic)


def test_what_is_held_is_not_looked_at_twice_at_a_time(place: RandomPlace) -> None:
    """C41: an expired step without a tombstone became one with the step of the tombstone that was held."""
    config = {
        "cleanup.policy": "compact,delete",
        "compaction.mode": "side-by-side",
        "compaction.strategy": "header",
        "compaction.strategy.header": "v",
        "message.timestamp.type": "LogAppendTime",
        "delete.retention.ms": 15,
        "retention.ms": 30,
        "min.compaction.lag.ms": 15,
        "min.compaction.lag.bytes": 60,
        "segment.bytes": 1024,
    }
    topic = CheckedTopic.create(place, 1, config)
    topic.append([a_record(b"a", None)._replace(headers=(("v", bytes(8)),))])
    place.clock.advance(15)
    topic.append([a_record(b"a", value) for value in (b"x" * 600, b"x" * 600, None)])
    check_round(topic)
    for later_ms in (30, 15, 0):
        version = topic.state.version
        place.clock.advance(later_ms)
        check_round(topic)
        check_topic(topic)
    assert topic.state.version == version


@pytest.mark.parametrize("at", range(3, 13))
@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_a_round_is_planned_again_where_what_superseded_is_deleted(place: RandomPlace, mode: str, at: int) -> None:
    """C10, C26, C44: whenever others delete it."""
    config = {"compaction.strategy": "timestamp", "compaction.mode": mode, "segment.max.dead.ratio": 1}
    topic = CheckedTopic.create(place, 1, config)
    topic.append([a_record(b"a", b"1", 1_900), a_record(b"a", b"2", 1_800), a_record(b"a", b"3", 1_700)])
    check_round(topic, trouble=Standstill(at, lambda: topic.delete_records(0, 1)))
    check_topic(topic)
