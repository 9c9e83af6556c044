"""PostgreSQL and S3 that take bytes and answer nothing, or a byte now and then: every wait ends (C6, C50)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from lithify.errors import LithifyError, UnknownOutcomeError, WarehouseError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg.catalog import configured
from lithify.store.iceberg.io import file_cache, remote_io
from lithify.waits import sql
from lithify.waits.deadline import hanging
from support.engines.kernel import KernelEngine
from support.servers.tcp_proxy import TcpProxy, wait_until
from support.store.builders import NOW_MS, ORDERS, Place
from support.topics.whole_logs import check_whole

from .conftest import Backend

pytestmark = pytest.mark.alone

REQUEST_S = 0.5
ANSWER_S = 0.7
BOUND_S = 60.0
TRICKLE_S = 0.2

KINDS = {"silent": ("silent", True), "trickling": ("trickle_s", TRICKLE_S)}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "FILE_BYTES", -1)  # everything is asked for, so that everything can fail
    monkeypatch.setattr(remote_io, "REQUEST_S", REQUEST_S)
    monkeypatch.setattr(remote_io, "FOLDER_S", REQUEST_S)
    monkeypatch.setattr(remote_io, "ATTEMPTS", 1)
    remote_io._file_system.cache_clear()
    monkeypatch.setattr(configured, "ANSWER_S", ANSWER_S)
    monkeypatch.setattr(configured, "TURN_S", ANSWER_S)
    monkeypatch.setattr(configured, "OPENING_S", 2 * ANSWER_S)
    monkeypatch.setattr(sql, "PATIENCE_S", 1.0)
    monkeypatch.setattr(sql, "PING_S", ANSWER_S)
    monkeypatch.setattr(configured, "CONNECTING", configured.CONNECTING | {"connect_timeout": "2"})


@pytest.fixture
def warehouse(backend: Backend, place: Place) -> Iterator[Warehouse]:
    place.create()
    found = Warehouse(place.store, place.files, place.clock)
    add(found, "first")
    yield found
    backend.s3_wire.mend()
    backend.database_wire.mend()
    wait_until(lambda: hanging() == 0, "calls hang although all answer again")


def add(warehouse: Warehouse, value: str) -> None:
    append(warehouse, ORDERS, [Record(value.encode(), b"v", NOW_MS, partition=0)])


def a_round(warehouse: Warehouse) -> None:
    (log,) = compact(warehouse, KernelEngine(access=warehouse.files.access), ORDERS, RunRequest()).logs
    if log.error is not None:
        raise WarehouseError(log.error)


def values(place: Place) -> list[str]:
    return [(r.key or b"").decode() for r in place.records(place.store.load(ORDERS))]


def stalls(wire: TcpProxy, kind: str, at: int) -> list[int]:
    """From the `at`-th chunk towards the server on, which the list then has more of than `at`."""
    seen: list[int] = []

    def look(_: bytes) -> None:
        seen.append(len(seen))
        if len(seen) == at:
            setattr(wire, *KINDS[kind])

    wire.on_request = look
    return seen


def bounded(call: Callable[[], object]) -> str:
    """What became of it, in time."""
    begun = time.monotonic()
    try:
        call()
    except LithifyError as error:
        found = type(error).__name__
    else:
        found = "done"
    assert time.monotonic() - begun < BOUND_S
    return found


@pytest.mark.parametrize(
    ("verb", "kind", "step"),
    [("append", "silent", 4), ("append", "trickling", 6), ("round", "silent", 12), ("sweep", "trickling", 1)],
)
def test_an_s3_that_stalls_at_any_request_is_given_up_and_nothing_is_lost(
    backend: Backend, place: Place, warehouse: Warehouse, verb: str, kind: str, step: int
) -> None:
    verbs: dict[str, Callable[[int], object]] = {
        "append": lambda at: add(warehouse, f"{at}"),
        "round": lambda _: a_round(warehouse),
        "sweep": lambda _: list(warehouse.store.stored_files(warehouse.store.load(ORDERS))),
    }
    told: Counter[str] = Counter()
    expected = values(place)
    at = 1
    while True:
        if verb == "round":
            add(warehouse, "again")  # takes the place of the one before
        seen = stalls(backend.s3_wire, kind, at)
        outcome = bounded(lambda: verbs[verb](at))  # noqa: B023 - called at once
        got_through = len(seen) < at
        backend.s3_wire.mend()
        wait_until(lambda: hanging() == 0, "calls hang although all answer again")
        told[outcome] += 1
        check_whole(warehouse, ORDERS)
        if verb == "append":
            expected += [f"{at}"] if outcome == "done" else []
            assert values(place) == expected, f"request {at}"
        elif verb == "round":
            assert set(values(place)) == {"first", "again"}
        if got_through:
            break
        at += step
    assert set(told) <= {"done", "WarehouseError"}
    assert told["WarehouseError"] >= 1 and told["done"] >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_postgres_that_stalls_at_any_moment_of_an_append_is_settled_when_it_is_back(
    backend: Backend, place: Place, warehouse: Warehouse, kind: str
) -> None:
    """An error has not landed, a success has, once; of an unknown outcome either."""
    wire = backend.database_wire
    sure, unsure = ["first"], set()
    told: Counter[str] = Counter()
    for at in range(1, 200, 5):
        seen = stalls(wire, kind, at)
        back = threading.Timer(1.5 * ANSWER_S, wire.mend)
        back.start()
        outcome = bounded(lambda: add(warehouse, f"{at}"))  # noqa: B023 - called at once
        back.join()
        wire.drop()  # what hung on the wire goes with it
        told[outcome] += 1
        if outcome == "done":
            sure.append(f"{at}")
        elif outcome == "UnknownOutcomeError":
            unsure.add(f"{at}")
        if len(seen) < at:
            break
    there = values(place)
    assert [value for value in there if value not in unsure] == sure
    assert len(there) == len(set(there))
    assert set(told) <= {"done", "WarehouseError", "UnknownOutcomeError"}
    assert told["done"] > 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_postgres_that_never_answers_again_is_given_up(backend: Backend, warehouse: Warehouse, kind: str) -> None:
    setattr(backend.database_wire, *KINDS[kind])
    assert bounded(lambda: dict(warehouse.store.change_tokens())) == "WarehouseError"
    assert bounded(lambda: add(warehouse, "x")) == "WarehouseError"
    with pytest.raises(WarehouseError):
        backend.place().store.topics()


def test_a_commit_that_is_never_answered_leaves_an_unknown_outcome(
    backend: Backend, place: Place, warehouse: Warehouse
) -> None:
    wire = backend.database_wire

    def look(data: bytes) -> None:
        wire.silent = wire.silent or (data.endswith(b"COMMIT\x00") and b"UPDATE" not in data)

    sent: list[bytes] = []
    wire.on_request = lambda data: (sent.append(data), look(data))[0]
    outcome = bounded(lambda: add(warehouse, "perhaps"))
    assert outcome in (UnknownOutcomeError.__name__, WarehouseError.__name__)
    wire.mend()
    wire.drop()
    assert values(place) in (["first"], ["first", "perhaps"])
