"""The S3 endpoint is cut off, slow, busy or strict: a clear error in bounded time, nothing lost, and on it goes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from lithify.columnar.files.access import FileAccess
from lithify.errors import DamagedError, LithifyError, WarehouseError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import LogReport
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg.io import file_cache, remote_io
from support.engines.kernel import KernelEngine
from support.engines.phased import PhasedEngine
from support.servers.tcp_proxy import HttpError
from support.store.builders import NOW_MS, ORDERS, Place, some_records

from .conftest import Backend

pytestmark = pytest.mark.alone

KEYS = 80
BOUND_S = 60.0
"""How long anything here may take in all: a request is tried twice in these tests."""


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "FILE_BYTES", -1)  # everything is asked for, so that everything can fail
    monkeypatch.setattr(remote_io, "ATTEMPTS", 2)
    monkeypatch.setattr(remote_io, "TIMEOUTS_S", dict.fromkeys(remote_io.TIMEOUTS_S, "2"))


@pytest.fixture
def warehouse(place: Place) -> Warehouse:
    """Has a topic with records that a round has something to do with."""
    place.create(delete_retention_ms=0)
    found = Warehouse(place.store, place.files, place.clock)
    for first in range(0, KEYS, KEYS // 4):  # each batch takes half of the keys of the one before
        keys = range(first, min(first + KEYS // 2, KEYS))
        append(found, ORDERS, [Record(b"%d" % n, os.urandom(2000), NOW_MS, partition=0) for n in keys])
    return found


def a_round(warehouse: Warehouse, **happens: Callable[[], object]) -> LogReport:
    """A round of the kernels; something `happens` before one of its phases."""
    engine = PhasedEngine(
        KernelEngine(access=warehouse.files.access), {name.replace("_", " "): call for name, call in happens.items()}
    )
    (log,) = compact(warehouse, engine, ORDERS, RunRequest()).logs
    return log


def says_unreachable(error: str | None) -> bool:
    return error is not None and "cannot be reached" in error and "restore" not in error


def got_through(warehouse: Warehouse, place: Place) -> None:
    """The next round does its work, as if nothing had been."""
    assert a_round(warehouse).error is None
    assert [r.key for r in place.records(warehouse.store.load(ORDERS))] == [b"%d" % n for n in range(KEYS)]


@pytest.mark.parametrize("phase", ["key_pass", "rewrite"])
def test_a_round_that_is_cut_off_between_its_phases(
    backend: Backend, place: Place, warehouse: Warehouse, phase: str
) -> None:
    before = warehouse.store.load(ORDERS)
    begun = time.monotonic()

    log = a_round(warehouse, **{phase: backend.s3_wire.cut})

    assert says_unreachable(log.error), log.error
    assert time.monotonic() - begun < BOUND_S
    backend.s3_wire.mend()
    assert warehouse.store.load(ORDERS) == before
    got_through(warehouse, place)


@pytest.mark.parametrize(
    "what", ["/data/", "/metadata/snap-", ".metadata.json", "/lithify/versions/", "/lithify/reports/"]
)
def test_a_round_that_is_cut_off_while_it_writes(
    backend: Backend, place: Place, warehouse: Warehouse, what: str
) -> None:
    before = warehouse.store.load(ORDERS)
    wire = backend.s3_wire

    def look(request: bytes) -> None:
        if request.startswith(b"PUT ") and what.encode() in request.partition(b"\r\n")[0]:
            wire.cut()

    wire.on_request = look
    begun = time.monotonic()

    try:
        error = a_round(warehouse).error
    except LithifyError as raised:
        error = str(raised)

    assert says_unreachable(error), error
    assert time.monotonic() - begun < BOUND_S
    wire.mend()
    assert warehouse.store.load(ORDERS) == before
    got_through(warehouse, place)


def test_a_connection_that_breaks_once_is_not_noticed(backend: Backend, place: Place, warehouse: Warehouse) -> None:
    wire = backend.s3_wire
    broken: set[tuple[bytes, bytes]] = set()

    def look(request: bytes) -> None:
        line = request.partition(b"\r\n")[0]
        kind = line.partition(b" ")[0], line.rpartition(b"/orders-")[2].partition(b"/")[2].partition(b"/")[0]
        if line.endswith(b"HTTP/1.1") and kind not in broken:
            broken.add(kind)
            wire.drop()

    wire.on_request = look

    got_through(warehouse, place)
    assert {(b"GET", b"data"), (b"PUT", b"data"), (b"GET", b"metadata"), (b"PUT", b"metadata")} < broken


def test_a_slow_endpoint_costs_time_and_nothing_else(backend: Backend, place: Place, warehouse: Warehouse) -> None:
    backend.s3_wire.delay_s = 0.02

    got_through(warehouse, place)


def test_a_silent_endpoint_is_given_up(backend: Backend, place: Place, warehouse: Warehouse) -> None:
    state = warehouse.store.load(ORDERS)
    backend.s3_wire.silent = True
    begun = time.monotonic()

    with pytest.raises(WarehouseError, match="cannot be reached: NETWORK_CONNECTION"):
        warehouse.store.load(ORDERS)

    assert time.monotonic() - begun < BOUND_S
    backend.s3_wire.mend()
    assert warehouse.store.load(ORDERS) == state


@pytest.mark.parametrize("requests", [1, 2])
def test_a_busy_endpoint_is_asked_again(
    backend: Backend, place: Place, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    monkeypatch.setattr(remote_io, "ATTEMPTS", 5)
    remote_io._file_system.cache_clear()

    log = a_round(
        warehouse,
        key_pass=lambda: backend.s3_wire.answer(requests),
        rewrite=lambda: backend.s3_wire.answer(requests),
        commit=lambda: backend.s3_wire.answer(requests),
    )

    assert log.error is None
    assert backend.s3_wire.errors_left == 0


def test_an_endpoint_that_stays_busy_fails_the_round(backend: Backend, place: Place, warehouse: Warehouse) -> None:
    before = warehouse.store.load(ORDERS)
    begun = time.monotonic()

    log = a_round(warehouse, rewrite=lambda: backend.s3_wire.answer(10**6))

    assert says_unreachable(log.error), log.error
    assert "503" in str(log.error) or "SLOW_DOWN" in str(log.error)
    assert time.monotonic() - begun < BOUND_S
    backend.s3_wire.mend()
    assert warehouse.store.load(ORDERS) == before
    got_through(warehouse, place)


@pytest.mark.parametrize("code", ["InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied"])
def test_credentials_that_are_refused(backend: Backend, place: Place, warehouse: Warehouse, code: str) -> None:
    state = warehouse.store.load(ORDERS)
    backend.s3_wire.answer(10**6, HttpError(403, code))

    for call in (lambda: warehouse.store.load(ORDERS), lambda: place.append(state, some_records("a"))):
        with pytest.raises(WarehouseError, match=r"access to it is refused|access key") as caught:
            call()
        assert "credentials" in caught.value.hint

    backend.s3_wire.mend()
    assert warehouse.store.load(ORDERS) == state


def test_a_bucket_that_is_not_there(backend: Backend) -> None:
    backend.describe(warehouse="s3://no-such-bucket/lake")

    with pytest.raises(WarehouseError, match="there is no bucket no-such-bucket") as caught:
        backend.place().create()

    assert "create it" in caught.value.hint


def test_a_bucket_that_went_away_is_no_damage(backend: Backend, place: Place) -> None:
    place.create()
    backend.filesystem(allow_bucket_deletion=True).delete_dir(backend.bucket)

    with pytest.raises(WarehouseError, match=f"no bucket {backend.bucket}"):
        place.store.load(ORDERS)


def test_a_file_that_is_missing_is_named_as_damage(backend: Backend, place: Place, warehouse: Warehouse) -> None:
    segment = warehouse.store.segments(warehouse.store.load(ORDERS))[0]
    backend.lose(segment)

    with pytest.raises(DamagedError, match=f"{segment.path}: the file is missing"):
        list(place.files.read(segment, 0))
    log = a_round(warehouse)
    assert log.error is not None and "the file is missing" in log.error


def test_a_file_that_goes_while_it_is_read_is_missing(backend: Backend, warehouse: Warehouse) -> None:
    segment = warehouse.store.segments(warehouse.store.load(ORDERS))[0]
    access = warehouse.files.access
    assert isinstance(access, FileAccess)

    with access.open(segment.path) as source:
        backend.lose(segment)
        with pytest.raises(FileNotFoundError, match="no longer exists"):
            source.read()


def test_a_file_that_was_overwritten_is_damaged(backend: Backend, place: Place, warehouse: Warehouse) -> None:
    segment = warehouse.store.segments(warehouse.store.load(ORDERS))[0]
    with backend.filesystem().open_output_stream(segment.path.removeprefix("s3://")) as sink:
        sink.write(os.urandom(segment.size_bytes))

    with pytest.raises(DamagedError, match=segment.path):
        list(place.files.read(segment, 0))
