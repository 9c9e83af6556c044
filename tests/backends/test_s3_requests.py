"""What is asked of an object store: files that never change are read once, and and what is forgotten again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lithify.ports.store import Warehouse
from lithify.service.read.fetch import table_batches
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.io.remote_io import RemoteFile, RemoteStream
from support.engines.kernel import KernelEngine
from support.generated.indexed_files import every_file_indexed
from support.store.builders import ORDERS, Place, some_records

Opened = Callable[[], list[str]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The files that were asked for since the last call."""
    noted: list[str] = []
    open_it = RemoteFile._opened

    def noting(file: RemoteFile, seekable: bool) -> RemoteStream:
        noted.append(file.location)
        return open_it(file, seekable)

    monkeypatch.setattr(RemoteFile, "_opened", noting)

    def since() -> list[str]:
        found = noted[:]
        noted.clear()
        return found

    return since


@pytest.fixture
def warehouse(place: Place) -> Warehouse:
    place.create()
    return Warehouse(place.store, place.files, place.clock)


def test_a_process_that_commits_again_reads_no_metadata(warehouse: Warehouse, opened: Opened) -> None:
    append(warehouse, ORDERS, some_records("a", "b"))
    opened()
    append(warehouse, ORDERS, some_records("a", "c"))
    assert opened() == []


def test_what_others_committed_is_read_once(warehouse: Warehouse, opened: Opened) -> None:
    append(warehouse, ORDERS, some_records("a", "b"))
    FILE_CACHE.clear()  # as in another process
    opened()
    state = warehouse.store.load(ORDERS)
    warehouse.store.segments(state)
    first = opened()
    assert len(first) == len(set(first)) == 3, "metadata, manifest list, manifest"
    warehouse.store.segments(warehouse.store.load(ORDERS))
    assert opened() == []


def test_a_round_reads_metadata_once_and_each_segment_whole(warehouse: Warehouse, opened: Opened) -> None:
    for keys in ("abc", "ab"):
        append(warehouse, ORDERS, some_records(*keys))
    opened()
    engine = KernelEngine(access=warehouse.files.access)
    assert compact(warehouse, engine, ORDERS, RunRequest()).changed
    assert all(path.endswith((".parquet", "rates.json")) for path in opened())


def test_what_is_forgotten_is_read_from_the_store_again(warehouse: Warehouse, opened: Opened) -> None:
    append(warehouse, ORDERS, some_records("a", "b"))
    opened()
    warehouse.store.clear_file_cache()
    warehouse.store.segments(warehouse.store.load(ORDERS))
    assert len(opened()) == 3


def test_a_key_that_is_not_there_opens_each_segment_once_at_most(place: Place, opened: Opened) -> None:
    place.create(key_index_enable="true")
    warehouse = Warehouse(place.store, place.files, place.clock)
    with every_file_indexed():
        for last in "xyz":
            append(warehouse, ORDERS, some_records("a", "c", last))
    state = warehouse.store.load(ORDERS)
    warehouse.store.segments(state)
    opened()
    assert [list(table_batches(warehouse, state, key=key)) for key in (b"b", b"-")] == [[], []]
    paths = [segment.path for segment in warehouse.store.segments(state)]
    assert sorted(opened()) == sorted(paths), "the bounds of keys rule out one of the two"
    for key, offset in ((b"x", 2), (b"z", 8), (b"a", 6)):
        (batch,) = table_batches(warehouse, state, key=key)
        assert [record.offset for record in batch.records()] == [offset]
