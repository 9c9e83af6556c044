"""The threads of a cleaner: none dies or hangs without the process saying so and ending (C50)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from lithify.api.wiring.system_clock import SystemClock
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.daemons import supervisor
from lithify.daemons.cleaner import loop
from lithify.daemons.cleaner.cleaner_options import CleanerOptions
from lithify.daemons.cleaner.loop import Loop, make_loop
from lithify.errors import CoordinationError, WarehouseError
from lithify.ports.leases import Lease
from lithify.ports.store import Warehouse
from lithify.reports.events import CleanerEvent, EventKind
from support.topics.cleaner_lake import CleanerLake

LIMIT_MS = 800
INTERVAL_MS = 50
LEASE_MS = 600
BOUND_S = 30.0
"""How long anything here may take; the machine may be busy."""


class JumpingClock(SystemClock):
    """The machine's, with its time that only goes forward some way ahead, as after a sleep of the machine."""

    ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


class LiveLake(CleanerLake):
    """The lake of the steps, on the machine's clock."""

    def __init__(self) -> None:
        super().__init__()
        self.system = JumpingClock()
        self.warehouse = Warehouse(self.warehouse.store, self.warehouse.files, self.system)
        self.coordination: Any = MemoryCoordination()
        self.events: list[CleanerEvent] = []
        self.tell: Callable[[CleanerEvent], None] = self.events.append

    def loop(self, threads: int = 1) -> Loop:
        options = CleanerOptions("alpha", "memory", threads=threads, interval_ms=INTERVAL_MS, lease_ms=LEASE_MS)
        return make_loop(self.warehouse, self.engine, self.coordination, options, self._told)

    def _told(self, event: CleanerEvent) -> None:
        self.tell(event)

    @contextmanager
    def running(self, **options: Any) -> Iterator[Loop]:
        """A cleaner on a thread, which has ended when this is left; whether it has is in `ended`."""
        made = self.loop(**options)
        self.ended: list[bool] = []
        thread = Thread(target=lambda: self.ended.append(made.run()))
        thread.start()
        try:
            yield made
        finally:
            made.stop.ask("the test is over")
            thread.join(BOUND_S)
            assert not thread.is_alive()

    def told(self, kind: EventKind) -> list[CleanerEvent]:
        return [event for event in self.events if event.kind is kind]


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> LiveLake:
    monkeypatch.setattr(supervisor, "LEAST_MS", LIMIT_MS)
    monkeypatch.setattr(supervisor, "INTERVALS", 1)
    monkeypatch.setattr(supervisor, "FINISH_S", 0.5)
    monkeypatch.setattr(supervisor, "GIVE_UP_S", 0.5)
    monkeypatch.setattr(supervisor, "AFTER_A_DEFECT_S", 0.05)
    return LiveLake()


def until(holds: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + BOUND_S
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.01)


def hanging(monkeypatch: pytest.MonkeyPatch, port: Any, method: str) -> Event:
    """The calls of `method` wait until the event is set."""
    real, go = getattr(port, method), Event()

    def wait(*given: Any) -> Any:
        go.wait(BOUND_S)
        return real(*given)

    monkeypatch.setattr(port, method, wait)
    return go


class Away(MemoryCoordination):
    """A database of leases that is away at first, for `tries` calls, or cannot be used."""

    def __init__(self, tries: int, *, is_outage: bool = True) -> None:
        super().__init__()
        self.tries, self.error = tries, CoordinationError("the lease database cannot be used")
        self.error.is_outage = is_outage

    def leases(self, prefix: str = "") -> tuple[Lease, ...]:
        if (left := self.tries) > 0:
            self.tries = left - 1
            raise self.error
        return super().leases(prefix)


def test_a_database_that_is_away_again_before_it_has_started_is_waited_for(
    lake: LiveLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "REGISTER_EVERY_S", 0.01)
    lake.coordination = Away(5)
    with lake.running():
        until(lambda: bool(lake.told(EventKind.STARTED)), "it does not start")
    kinds = [event.kind for event in lake.events]
    assert kinds[:3] == [EventKind.TROUBLE, EventKind.RECOVERED, EventKind.STARTED]
    lake.events.clear()
    lake.coordination = Away(10**9)
    with lake.running() as made:
        until(lambda: bool(lake.told(EventKind.TROUBLE)), "it does not say so")
    assert (lake.ended, made.stop.failed) == ([True], False)
    assert [event.kind for event in lake.events] == [EventKind.TROUBLE, EventKind.STOPPED]


def test_a_database_of_leases_that_cannot_be_used_ends_it_as_does_an_outage_one_run(lake: LiveLake) -> None:
    for coordination, once in ((Away(1, is_outage=False), False), (Away(1), True)):
        lake.coordination = coordination
        with pytest.raises(CoordinationError):
            lake.loop().run(once=once)
    assert lake.events == []


@pytest.mark.parametrize("method", ["change_tokens", "load", "get_document", "segments"])
def test_a_look_that_hangs_ends_the_process_with_a_clear_line(
    lake: LiveLake, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    lake.append(lake.topic("orders"), "a=1 a=2")
    go = hanging(monkeypatch, lake.warehouse.store, method)
    with lake.running() as made:
        until(made.stop.asked.is_set, "it goes on for ever")
        assert made.stop.failed
        assert "no check of the topics has completed for 800 ms" in made.stop.reason
        until(lambda: bool(lake.ended), "it does not end")
        go.set()
    assert lake.ended == [False]
    (stopped,) = lake.told(EventKind.STOPPED)
    assert stopped.facts == {"reason": made.stop.reason, "last_look_ms": None}


def test_looks_that_fail_for_too_long_end_it_and_the_reason_is_reported(
    lake: LiveLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> Any:
        raise WarehouseError("catalog prod cannot be reached")

    with lake.running() as made:
        until(lambda: made.cleaner.looks > 0, "it does not look")
        monkeypatch.setattr(lake.warehouse.store, "change_tokens", gone)
        until(made.stop.asked.is_set, "it goes on for ever")
        assert made.stop.failed
        assert "catalog prod cannot be reached" in made.stop.reason
    (stopped,) = lake.told(EventKind.STOPPED)
    looked_ms = stopped.facts["last_look_ms"]
    assert stopped.time_ms - BOUND_S * 1_000 < looked_ms < stopped.time_ms
    assert {event.facts["last_look_ms"] for event in lake.told(EventKind.TROUBLE)} == {looked_ms}


def test_a_look_that_takes_long_and_gets_on_is_left_alone(lake: LiveLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        lake.topic(f"t{number:02}")
    load = lake.warehouse.store.load

    def slowly(name: Any) -> Any:
        time.sleep(LIMIT_MS / 1000 / 4)
        return load(name)

    monkeypatch.setattr(lake.warehouse.store, "load", slowly)
    with lake.running() as made:
        until(lambda: made.cleaner.looks > 0, "it does not get through")
        assert not made.stop.asked.is_set()


def test_a_round_that_takes_long_keeps_no_thread_from_looking(lake: LiveLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append(lake.topic("orders"), "a=1 a=2")
    go = hanging(monkeypatch, lake.engine, "open_round")
    with lake.running(threads=1) as made:
        time.sleep(3 * LIMIT_MS / 1000)
        assert not made.stop.asked.is_set()
        before = made.cleaner.looks
        until(lambda: made.cleaner.looks > before + 2, "no thread looks")
        go.set()
        until(lambda: bool(lake.told(EventKind.ROUND)), "the round does not end")


def test_a_machine_that_slept_ends_no_cleaner(lake: LiveLake) -> None:
    with lake.running() as made:
        until(lambda: made.cleaner.looks > 0, "it does not look")
        before = made.cleaner.looks
        lake.system.ahead_ms = 3_600_000
        until(lambda: made.cleaner.looks > before + 2, "it does not look again")
        assert not made.stop.asked.is_set()


def test_an_idle_cleaner_says_now_and_then_that_it_has_looked(lake: LiveLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lithify.daemons.cleaner.cleaner.REPORT_MS", 200)
    lake.topic("idle")
    with lake.running():
        until(lambda: len(lake.told(EventKind.LOOKED)) > 2, "no event is reported")
    assert {event.facts["due"] for event in lake.told(EventKind.LOOKED)} == {0}


@pytest.mark.parametrize("method", ["renew", "leases", "release", "take"])
def test_a_database_of_leases_that_fails_in_an_unforeseen_way_ends_no_thread(
    lake: LiveLake, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    topic = lake.topic("orders", min_cleanable_dirty_ratio=0)
    with lake.running() as made:
        until(lambda: made.cleaner.looks > 0, "it does not look")

        def broken(*_: Any) -> Any:
            raise TypeError("a row that is none")

        with monkeypatch.context() as patched:
            patched.setattr(lake.coordination, method, broken)
            lake.append(topic, "a=1 a=2")
            until(lambda: bool(lake.told(EventKind.TROUBLE)), "no event is reported")
            time.sleep(2 * LEASE_MS / 1000)
        lake.append(topic, "a=3")
        until(lambda: lake.text(topic) == "a=3", "it does not work any more")
        assert not made.stop.asked.is_set()
    told = [str(event.facts["error"]) for event in lake.told(EventKind.TROUBLE)]
    assert "TypeError: a row that is none" in told[0] and "test_threads.py" in told[0]


def test_a_cleaner_whose_reader_of_events_is_gone_ends_and_has_failed(lake: LiveLake) -> None:
    topic = lake.topic("orders")

    def closed(event: CleanerEvent) -> None:
        if event.kind is not EventKind.STARTED:
            raise BrokenPipeError(32, "Broken pipe")

    lake.tell = closed
    with lake.running() as made:
        lake.append(topic, "a=1 a=2")
        until(lambda: bool(lake.ended), "it goes on")
    assert made.stop.failed
    assert "Broken pipe" in made.stop.reason


def test_a_listener_that_stopped_reading_does_not_keep_it_from_ending(lake: LiveLake) -> None:
    topic, go = lake.topic("orders"), Event()
    lake.tell = lambda event: None if event.kind is EventKind.STARTED else (go.wait(BOUND_S) and None)
    with lake.running() as made:
        lake.append(topic, "a=1 a=2")
        made.stop.ask("SIGTERM")
        until(lambda: bool(lake.ended), "it does not end")
    go.set()


def test_a_database_of_leases_that_hangs_does_not_keep_it_from_ending(
    lake: LiveLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake.running() as made:
        until(lambda: made.cleaner.looks > 0, "it does not look")
        go = hanging(monkeypatch, lake.coordination, "release")
        made.stop.ask("SIGTERM")
        until(lambda: bool(lake.ended), "it does not end")
    go.set()


def test_nothing_of_it_goes_on_when_it_has_ended(lake: LiveLake, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for method in ("renew", "leases", "take"):
        real = getattr(lake.coordination, method)
        monkeypatch.setattr(lake.coordination, method, lambda *given, m=method, r=real: calls.append(m) or r(*given))
    with lake.running() as made:
        until(lambda: made.cleaner.looks > 0, "it does not look")
    assert lake.ended == [True]
    time.sleep(LEASE_MS / 1000)
    before = len(calls)
    time.sleep(2 * LEASE_MS / 1000)
    assert len(calls) == before


def test_others_see_when_it_last_looked_until_it_has_ended_in_order(lake: LiveLake) -> None:
    with lake.running() as made:
        until(lambda: any(note.looked_ms for note in lake.coordination.notes()), "no note")
        (note,) = lake.coordination.notes()
        assert (note.cleaner, note.scope, note.interval_ms) == ("alpha", "memory", INTERVAL_MS)
        until(lambda: lake.coordination.notes()[0].looked_ms > note.looked_ms, "the note is not renewed")
        assert made.cleaner.last_look_ms is not None
    assert lake.coordination.notes() == ()


def test_of_one_that_failed_others_see_since_when_it_does_not_look(
    lake: LiveLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> Any:
        raise WarehouseError("catalog prod cannot be reached")

    with lake.running() as made:
        until(lambda: made.cleaner.looks > 0, "it does not look")
        monkeypatch.setattr(lake.warehouse.store, "change_tokens", refused)
        until(made.stop.asked.is_set, "it goes on for ever")
    (note,) = lake.coordination.notes()
    assert note.looked_ms == made.cleaner.last_look_ms


def test_notes_that_cannot_be_written_are_reported_once_and_looks_go_on(
    lake: LiveLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Any) -> None:
        raise CoordinationError("permission denied for schema public")

    monkeypatch.setattr(lake.coordination, "put_note", refused)
    with lake.running() as made:
        until(lambda: made.cleaner.looks > 5, "it does not look")
    assert [str(event.facts["error"]) for event in lake.told(EventKind.TROUBLE)] == [
        "permission denied for schema public"
    ]
