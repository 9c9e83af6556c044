"""PostgreSQL stops, or its connections break, at the worst moments: nothing is lost, nothing lands twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import psycopg2
import pytest
from sqlalchemy import event

from lithify.errors import LithifyError, UnknownOutcomeError, WarehouseError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg.catalog import configured, lock
from lithify.waits import sql
from support.engines.kernel import KernelEngine
from support.store.builders import NOW_MS, ORDERS, Place

from .conftest import Backend

COMMIT = b"COMMIT\x00"
BOUND_S = 60.0


@pytest.fixture
def warehouse(place: Place) -> Warehouse:
    place.create()
    found = Warehouse(place.store, place.files, place.clock)
    add(found, "before")
    return found


@pytest.fixture(autouse=True)
def runs_again(backend: Backend) -> Iterator[None]:
    """Whatever a test does to the server, the next one has it."""
    yield
    try:
        backend.postgres.run("SELECT 1")
    except psycopg2.OperationalError:
        restart(backend)


def add(warehouse: Warehouse, value: str) -> None:
    append(warehouse, ORDERS, [Record(value.encode(), b"v", NOW_MS, partition=0)])


def values(place: Place) -> list[str]:
    """The keys of what is in the log, whose offsets go on without a gap."""
    records = place.records(place.store.load(ORDERS))
    assert [r.offset for r in records] == list(range(len(records)))
    return [(r.key or b"").decode() for r in records]


def once(do: Callable[[], object], when: Callable[[bytes], bool]) -> Callable[[bytes], None]:
    """A look at the wire that does something at the first chunk that fits."""
    left = [do]

    def look(data: bytes) -> None:
        if left and when(data):
            left.pop()()

    return look


def restart(backend: Backend) -> None:
    backend.postgres.stop_at_once()
    backend.postgres.start()


def at_the_commit(backend: Backend, do: Callable[[], object], *, lands: bool) -> None:
    """Does something when the next COMMIT is on its way: before it arrives, or before its answer does."""
    wire = backend.database_wire

    def at_the_answer() -> None:
        wire.on_answer = once(do, lambda _: True)

    wire.on_request = once(at_the_answer if lands else do, lambda data: data.endswith(COMMIT))


@pytest.mark.parametrize("lands", [False, True])
def test_a_restart_in_the_middle_of_an_append(
    backend: Backend, place: Place, warehouse: Warehouse, lands: bool
) -> None:
    at_the_commit(backend, lambda: restart(backend), lands=lands)

    add(warehouse, "during")
    add(warehouse, "after")

    assert values(place) == ["before", "during", "after"]


@pytest.mark.parametrize("lands", [False, True])
def test_a_restart_in_the_middle_of_a_round(backend: Backend, place: Place, warehouse: Warehouse, lands: bool) -> None:
    add(warehouse, "before")
    at_the_commit(backend, lambda: restart(backend), lands=lands)

    report = compact(warehouse, KernelEngine(access=warehouse.files.access), ORDERS, RunRequest())

    assert report.logs[0].error is None
    newest = place.store.load(ORDERS)
    assert [r.offset for r in place.records(newest)] == [1]
    assert newest.log(0).first_dirty_offset == 2
    assert len(place.store.versions(ORDERS)) == 1


@pytest.mark.parametrize("lands", [False, True])
def test_a_server_that_stays_away_leaves_an_unknown_outcome_and_says_so(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    monkeypatch.setattr(sql, "PATIENCE_S", 1.0)
    place = backend.place()
    place.create()
    warehouse = Warehouse(place.store, place.files, place.clock)
    add(warehouse, "before")

    def stop() -> None:
        backend.postgres.stop_at_once()
        backend.database_wire.drop()

    at_the_commit(backend, stop, lands=lands)
    begun = time.monotonic()

    with pytest.raises(UnknownOutcomeError, match="it may have landed"):
        add(warehouse, "during")

    assert time.monotonic() - begun < BOUND_S
    with pytest.raises(WarehouseError, match="catalog prod cannot be reached"):
        add(warehouse, "away")
    backend.postgres.start()
    add(warehouse, "after")
    assert values(place) == ["before", *(["during"] if lands else []), "after"]


def test_connections_that_broke_between_commits_are_not_noticed(
    backend: Backend, place: Place, warehouse: Warehouse
) -> None:
    for value in ("first", "second"):
        backend.database_wire.drop()
        add(warehouse, value)
    restart(backend)
    add(warehouse, "third")

    assert values(place) == ["before", "first", "second", "third"]


@pytest.mark.parametrize("way", ["request", "answer"])
def test_a_connection_cut_at_every_chunk_of_an_append(
    backend: Backend, place: Place, warehouse: Warehouse, way: str
) -> None:
    """The chunk that is cut never arrives; an error must not have landed, a success must have, once."""
    wire = backend.database_wire
    expected = ["before"]
    outcomes: Counter[str] = Counter()
    for chunk in range(200):
        seen = iter(range(10**6))
        look = once(wire.drop, lambda _, chunk=chunk, seen=seen: next(seen) == chunk)  # type: ignore[misc]
        setattr(wire, f"on_{way}", look)
        value = f"{way}{chunk}"
        try:
            add(warehouse, value)
        except WarehouseError:
            outcomes["refused"] += 1
        else:
            outcomes["landed"] += 1
            expected.append(value)
        if next(seen) <= chunk:  # the append needed no more chunks than that
            break

    wire.mend()
    assert values(place) == expected
    assert outcomes["landed"] > 1
    assert outcomes["refused"] > 1


@pytest.mark.alone
def test_a_catalog_that_loses_connections_at_random(backend: Backend, place: Place, warehouse: Warehouse) -> None:
    chance = random.Random(5)
    done = threading.Event()

    def lose() -> None:
        while not done.wait(chance.uniform(0.0, 0.2)):
            backend.database_wire.drop()

    losing = threading.Thread(target=lose)
    losing.start()
    told: dict[str, str] = {}
    try:
        for n in range(50):
            try:
                add(warehouse, f"{n}")
                told[f"{n}"] = "landed"
            except LithifyError as error:
                told[f"{n}"] = type(error).__name__
    finally:
        done.set()
        losing.join()

    there = Counter(values(place))
    assert set(told.values()) <= {"landed", "WarehouseError", "UnknownOutcomeError"}
    for value, what in told.items():
        expected = {"landed": (1,), "WarehouseError": (0,), "UnknownOutcomeError": (0, 1)}[what]
        assert there[value] in expected, (value, what)
    assert Counter(told.values())["landed"] > 10


def test_a_program_that_freezes_in_its_commit_delays_no_other_for_long(
    backend: Backend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configured, "IDLE_TIMEOUT_MS", 1000)
    monkeypatch.setattr(lock, "MAX_WAIT_S", 1.0)  # it holds its turn as well
    frozen_place = backend.place()
    frozen_place.create()
    frozen, awake = threading.Event(), threading.Event()

    def freeze(_: object) -> None:
        if not frozen.is_set():
            frozen.set()
            awake.wait(timeout=4 * BOUND_S)

    event.listen(frozen_place.store._source.created().engine, "commit", freeze)
    slow = Warehouse(frozen_place.store, frozen_place.files, frozen_place.clock)
    thread = threading.Thread(target=partial(add, slow, "slow"))
    thread.start()
    try:
        assert frozen.wait(timeout=BOUND_S)
        begun = time.monotonic()
        add(Warehouse(place.store, place.files, place.clock), "quick")
        assert time.monotonic() - begun < BOUND_S
        assert not awake.is_set()
    finally:
        awake.set()
        thread.join(timeout=BOUND_S)

    assert not thread.is_alive()
    assert values(place) == ["quick", "slow"]


def test_a_server_that_restarts_is_waited_for_at_the_first_connection_of_a_process(backend: Backend) -> None:
    backend.postgres.stop_at_once()
    back = threading.Timer(1.0, backend.postgres.start)
    back.start()
    try:
        assert backend.place().store.topics() == ()
    finally:
        back.join()


def test_a_connection_lost_before_the_commit_leaves_no_doubt(
    backend: Backend, place: Place, warehouse: Warehouse
) -> None:
    wire = backend.database_wire
    wire.on_request = once(wire.drop, lambda data: b"UPDATE" in data and b"metadata_location" in data)

    with pytest.raises(WarehouseError, match="closed the connection"):
        add(warehouse, "lost")

    add(warehouse, "after")
    assert values(place) == ["before", "after"]


def test_a_password_that_is_wrong(backend: Backend) -> None:
    backend.describe(uri=backend.postgres.uri(backend.database, password="close sesame"))

    with pytest.raises(WarehouseError, match="password authentication failed") as caught:
        backend.place().store.topics()

    assert "close" not in str(caught.value)
    assert not caught.value.is_outage


def test_a_server_that_never_answers_is_given_up(backend: Backend) -> None:
    backend.describe(uri=f"{backend.properties['uri']}?connect_timeout=2")
    backend.database_wire.silent = True
    begun = time.monotonic()

    with pytest.raises(WarehouseError, match="catalog prod cannot be reached"):
        backend.place().store.topics()

    assert time.monotonic() - begun < BOUND_S
