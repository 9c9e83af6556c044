"""Every store does what a store must: the memory store, which says what that is, and Iceberg's in each of its ways.

memory            the specification
Iceberg           over a catalog in a folder
many processes    the same, when no process remembers anything
REST              over a catalog service: commits go through JSON and HTTP, and answers get lost on the way
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lithify.errors import UnknownVersionError
from lithify.model.record import Record
from lithify.model.topic.state import TopicState
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.service.write.append import append
from lithify.store.iceberg import IcebergStore, open_store
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from store.conformance import FileRules, ManyRules, StoreConformance
from store.rest_catalog import RestCatalog, a_rest_catalog
from support.store.builders import NOW_MS, ORDERS, Place, lose_file, some_records
from support.store.catalogs import describe_catalog


class TestMemoryStore(StoreConformance, FileRules, ManyRules):
    @pytest.fixture
    def place(self) -> Place:
        clock = FakeClock()
        warehouse = MemoryWarehouse(clock.new_id)
        return Place(
            warehouse.store, warehouse.files, clock, lambda segment: warehouse.files.data.pop(segment.path) and None
        )


class TestIcebergStore(StoreConformance, FileRules, ManyRules):
    @pytest.fixture
    def place(self, iceberg: Place) -> Place:
        return iceberg

    def test_what_was_loaded_by_its_token_is_good_after_others_have_committed(self, place: Place) -> None:
        before = place.append(place.create(), some_records("a"))
        (found,) = (place.store.load_at(*known) for known in place.store.change_tokens())
        place.append(before, some_records("b"))

        assert len(place.store.segments(found)) == 1


class Reopened:
    """Opens the warehouse anew for every single call, as if each came from another process."""

    def __init__(self, open_one: Callable[[], IcebergStore]) -> None:
        self._open_one = open_one

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open_one(), name)


class TestIcebergStoreOfManyProcesses(StoreConformance):
    """With the files of the one above."""

    @pytest.fixture
    def place(self, iceberg: Place, tmp_path: Path) -> Place:
        def open_one() -> IcebergStore:
            return open_store(str(tmp_path / "warehouse"), None, iceberg.clock.new_id)[0]

        return replace(iceberg, store=Reopened(open_one))  # type: ignore[arg-type]

    def segments_seen_before(self, place: Place, state: TopicState) -> object:
        self.check_refused_without_lists(place, state)
        return super().segments_seen_before(place, state)

    def view_seen_before(self, place: Place, state: TopicState) -> object:
        self.check_refused_without_lists(place, state)
        return super().view_seen_before(place, state)

    def check_refused_without_lists(self, place: Place, state: TopicState) -> None:
        """A state brings its manifest lists. One without, neither newest nor kept, is refused, never guessed at."""
        if place.store.load(state.name).version == state.version:
            return
        with pytest.raises(UnknownVersionError, match="version"):
            place.store.segments(replace(state, stored_as=None))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RestCatalog]:
    with a_rest_catalog(tmp_path) as catalog:
        yield catalog


@pytest.fixture
def rest(service: RestCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    describe_catalog(monkeypatch, type="rest", uri=service.uri, warehouse=f"file://{tmp_path}/lake")
    clock = FakeClock(NOW_MS)
    return Place(*open_store(None, "prod", clock.new_id), clock, lose_file)


class TestIcebergStoreOverRest(StoreConformance, FileRules):
    @pytest.fixture
    def place(self, rest: Place) -> Place:
        return rest


def test_a_lost_answer_of_the_service_appends_once(rest: Place, service: RestCatalog) -> None:
    rest.create()
    warehouse = Warehouse(rest.store, rest.files, rest.clock)

    for n in range(4):
        service.lose_answers = n % 2
        append(warehouse, ORDERS, [Record(b"k", b"%d" % n)])

    records = rest.records(rest.store.load(ORDERS))
    assert [(r.offset, r.value) for r in records] == [(n, b"%d" % n) for n in range(4)]


def test_a_topic_deleted_while_a_commit_is_on_its_way(rest: Place, service: RestCatalog) -> None:
    state = rest.create()
    service.before_commit = lambda: service.catalog.drop_table(("default", "orders"))

    with pytest.raises(StaleVersionError):
        rest.append(state, some_records("a"))

    assert rest.store.topics() == ()


def test_two_clients_of_the_service_do_not_overwrite_each_other(rest: Place) -> None:
    other_clock = FakeClock(NOW_MS + 1)
    other = Place(*open_store(None, "prod", other_clock.new_id), other_clock, lose_file)
    state = rest.create()
    newest = other.append(other.store.load(ORDERS), some_records("theirs"))

    with pytest.raises(StaleVersionError):
        rest.append(state, some_records("ours"))

    assert rest.store.load(ORDERS) == newest
