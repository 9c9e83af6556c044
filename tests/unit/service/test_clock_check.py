"""A cleaner whose clock is years off drops nothing, on either store, until it is confirmed (C46)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lithify.errors import ClockError
from lithify.model.record import Record
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.clock_check import trust_clock
from lithify.service.read.fetch import open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from support.checked.places import PLACES
from support.checked.topic import NAME, CheckedTopic
from support.checked.trouble import RandomPlace
from support.engines.phased import PhasedEngine
from support.topics.memory_topic import MemoryTopic

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEARS_MS = 10 * 365 * DAY_MS


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[RandomPlace]:
    """A topic with a round, then records, a kept version and a file that is named by nothing that is new."""
    with PLACES[request.param]() as made:
        config = {"cleanup.policy": "compact,delete", "retention.ms": "7d", "segment.bytes": 1024}
        CheckedTopic.create(made, 1, config)
        produce(made, b"1", b"2")
        compact(made.warehouse, made.engine, NAME, RunRequest())  # type: ignore[arg-type]
        produce(made, b"3")
        yield made


def produce(place: RandomPlace, *values: bytes | None) -> None:
    append(place.warehouse, NAME, [Record(b"k", value, place.clock.now_ms(), partition=0) for value in values])


DROPS = {
    "retain": lambda place: retain(place.warehouse, NAME),
    "round": lambda place: compact(place.warehouse, place.engine, NAME, RunRequest()),
    "expire": lambda place: expire_versions(place.warehouse, NAME),
    "sweep": lambda place: sweep(place.warehouse, NAME, delete=True),
}


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("ahead_ms", [YEARS_MS, 30 * YEARS_MS])
def test_nothing_is_dropped_by_a_clock_that_is_years_ahead(place: RandomPlace, drop: str, ahead_ms: int) -> None:
    """C46: an append by the same clock is no witness for it."""
    if drop == "sweep":  # expire a version, so that there are unnamed files
        expire_versions(place.warehouse, NAME, now_ms=place.clock.now_ms() + 3 * DAY_MS)
    files = {file.path for file in place.warehouse.store.stored_files(place.warehouse.store.load(NAME))}
    place.clock.advance(ahead_ms)
    produce(place, b"4")
    state = place.warehouse.store.load(NAME)
    with pytest.raises(ClockError, match=r"orders: the clock is at .*years after .*allow_clock_jump=True"):
        DROPS[drop](place)
    assert place.warehouse.store.load(NAME) == state
    assert files <= {file.path for file in place.warehouse.store.stored_files(state)}


def test_a_round_is_not_dated_by_a_clock_that_leaps_before_its_commit(place: RandomPlace) -> None:
    """C46, C18: once it is right again, the round is made by that, and its tombstones go in time."""
    produce(place, None)
    before = place.warehouse.store.load(NAME)
    leaping = PhasedEngine(place.engine, {"commit": lambda: place.clock.advance(YEARS_MS)})  # type: ignore[arg-type]
    (log,) = compact(place.warehouse, leaping, NAME, RunRequest()).logs
    assert log.error is not None and "the clock is at" in log.error
    assert place.warehouse.store.load(NAME) == before
    place.clock.advance(-YEARS_MS)
    compact(place.warehouse, place.engine, NAME, RunRequest())  # type: ignore[arg-type]
    assert [s.time_ms for s in place.warehouse.store.load(NAME).log(0).steps][-1] <= place.clock.now_ms()


@pytest.mark.parametrize("drop", ["retain", "round", "expire"])
def test_a_user_who_confirms_the_clock_is_asked_once(place: RandomPlace, drop: str) -> None:
    """C46: from then on the topic goes by that clock."""
    place.clock.advance(YEARS_MS)
    trust_clock(place.warehouse, NAME)
    before = place.warehouse.store.load(NAME)
    DROPS[drop](place)
    assert place.warehouse.store.load(NAME).version > before.version
    trust_clock(place.warehouse, NAME)
    place.clock.advance(-YEARS_MS)
    with pytest.raises(ClockError, match="before a commit of the topic"):
        produce(place, b"5")
        compact(place.warehouse, place.engine, NAME, RunRequest())  # type: ignore[arg-type]


def test_a_clock_that_is_right_needs_no_confirmation(place: RandomPlace) -> None:
    """C46: no commit is made for it."""
    version = place.warehouse.store.load(NAME).version
    trust_clock(place.warehouse, NAME)
    assert place.warehouse.store.load(NAME).version == version


def test_a_time_that_a_person_gives_is_no_clock(place: RandomPlace) -> None:
    """C46: `--now` says what it says."""
    report = retain(place.warehouse, NAME, now_ms=place.clock.now_ms() + YEARS_MS)
    assert report.changed


def test_a_round_with_nothing_to_do_needs_no_clock(place: RandomPlace) -> None:
    """C41, C46."""
    compact(place.warehouse, place.engine, NAME, RunRequest())  # type: ignore[arg-type]
    place.clock.advance(-YEARS_MS)
    assert not compact(place.warehouse, place.engine, NAME, RunRequest()).changed  # type: ignore[arg-type]


def test_a_round_by_a_clock_that_is_hours_behind_shortens_no_time(place: RandomPlace) -> None:
    """C5, C7, C18, C46: its tombstone and the version that it closed stay a day from the commit before it on."""

    def kept() -> list[int]:
        return [version.version for version in place.warehouse.store.versions(NAME)]

    def tombstones() -> int:
        return sum(record.value is None for record in open_log(place.warehouse, place.warehouse.store.load(NAME), 0))

    produce(place, None)
    place.clock.advance(-8 * HOUR_MS)
    compact(place.warehouse, place.engine, NAME, RunRequest())  # type: ignore[arg-type]
    closed, *_ = kept()
    place.clock.advance(8 * HOUR_MS + 23 * HOUR_MS)
    expire_versions(place.warehouse, NAME)
    compact(place.warehouse, place.engine, NAME, RunRequest())  # type: ignore[arg-type]
    assert closed in kept() and tombstones() == 1
    place.clock.advance(2 * HOUR_MS)
    expire_versions(place.warehouse, NAME)
    compact(place.warehouse, place.engine, NAME, RunRequest())  # type: ignore[arg-type]
    assert closed not in kept() and tombstones() == 0


@pytest.mark.long
@pytest.mark.parametrize("set_right", ["after its commit", "before its commit"])
def test_tombstones_go_where_each_round_is_by_a_clock_that_is_behind(place: RandomPlace, set_right: str) -> None:
    """C18, C19, C46: however often rounds are, none waits for longer than the clock of their plans says."""

    def commits() -> None:
        place.clock.advance(3 * HOUR_MS if set_right == "before its commit" else 0)

    engine = PhasedEngine(place.engine, {"commit": commits})  # type: ignore[arg-type]
    for hour in range(36):
        append(place.warehouse, NAME, [Record(b"k%d" % hour, None, place.clock.now_ms(), partition=0)])
        right_ms = place.clock.now_ms()
        place.clock.advance(-3 * HOUR_MS)
        compact(place.warehouse, engine, NAME, RunRequest())
        place.clock.set(right_ms + HOUR_MS)
    steps = place.warehouse.store.load(NAME).log(0).steps
    assert sum(step.tombstones for step in steps) == 24 + 3


def test_tombstones_go_where_retention_is_by_another_clock_than_rounds() -> None:
    """C18, C19, C46: that one is right, and drops a segment after each round of one that is behind."""
    settings = {"delete_retention_ms": 4 * HOUR_MS, "retention_ms": 12 * HOUR_MS, "segment_bytes": 1024}
    topic = MemoryTopic(now_ms=YEARS_MS, cleanup_policy="compact,delete", **settings)
    for hour in range(24):
        for record in (Record(b"v%d" % hour, bytes(900), 0), Record(b"k%d" % hour, None, 0)):
            topic.append([record._replace(timestamp=topic.clock.now_ms())])
        topic.clock.advance(-3 * HOUR_MS)
        topic.compact()
        topic.clock.advance(3 * HOUR_MS)
        assert retain(topic.warehouse, NAME).changed == (hour > 12)
        topic.clock.advance(HOUR_MS)
    assert topic.log().tombstones == 4 + 3


@pytest.mark.parametrize("days", [1, 8])
def test_undo_brings_no_time_to_come_back(place: RandomPlace, days: int) -> None:
    """C46, C7: a confirmed clock has set it back, also where retention has taken all records and steps meanwhile."""
    place.clock.advance(366 * DAY_MS)
    for value in (None, b"4"):
        produce(place, value)
        place.clock.advance(days * DAY_MS if value else 0)
        compact(place.warehouse, place.engine, NAME, RunRequest())  # type: ignore[arg-type]
    assert bool(place.warehouse.store.load(NAME).log(0).steps) == (days < 7)
    place.clock.advance(-(366 + days) * DAY_MS)
    trust_clock(place.warehouse, NAME)
    undo(place.warehouse, NAME)
    log, now_ms = place.warehouse.store.load(NAME).log(0), place.clock.now_ms()
    assert [step.time_ms for step in log.steps] == [now_ms]
    assert log.last_round_ms == now_ms


def test_an_idle_topic_expires_by_itself(place: RandomPlace) -> None:
    """C46, C24."""
    place.clock.advance(366 * DAY_MS)
    assert retain(place.warehouse, NAME).changed
