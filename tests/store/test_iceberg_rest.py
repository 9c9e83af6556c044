"""The Iceberg store over a catalog service: commits go through JSON and HTTP, and answers get lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lithify.model.record import Record
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from store.conformance import StoreConformance
from store.rest_catalog import RestCatalog, a_rest_catalog
from support.fake_clock import FakeClock
from support.store.builders import NOW_MS, ORDERS, Place, lose_file, some_records
from support.store.catalogs import describe_catalog


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RestCatalog]:
    with a_rest_catalog(tmp_path) as catalog:
        yield catalog


@pytest.fixture
def rest(service: RestCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    describe_catalog(monkeypatch, type="rest", uri=service.uri, warehouse=f"file://{tmp_path}/lake")
    clock = FakeClock(NOW_MS)
    return Place(*open_store(None, "prod", clock.new_id), clock, lose_file)


class TestIcebergStoreOverRest(StoreConformance):
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
