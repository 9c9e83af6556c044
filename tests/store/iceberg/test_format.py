"""Where a warehouse says what it can hold, and that it is asked before anything else (C66)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.errors import DamagedError, UnknownStreamError, UnsupportedFormatError, WarehouseError
from lithify.model.formats.warehouse import NEWEST_FORMAT
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.service.documents import put_warehouse_format
from lithify.store.iceberg import open_store
from lithify.store.iceberg.catalog.stated_format import PROPERTY
from lithify.testing.fake_clock import FakeClock
from store.rest_catalog import RestCatalog, a_rest_catalog
from support.store.catalogs import describe_catalog

CLOCK = FakeClock()


def a_lake(*where: str | None) -> Lake:
    """As another program opens it."""
    return Lake(Warehouse(*open_store(*where, CLOCK.new_id), CLOCK))  # type: ignore[misc, arg-type]


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestCatalog]:
    """A catalog service that gives every topic a folder of its own, since its warehouse is a mere name."""
    with a_rest_catalog(tmp_path) as catalog:
        describe_catalog(monkeypatch, type="rest", uri=catalog.uri, warehouse="lake")
        yield catalog


def test_a_catalog_without_a_folder_of_its_own_is_upgraded_by_a_property_of_a_namespace(service: RestCatalog) -> None:
    """C66: nothing is created for it before, also where it is new."""
    lake = a_lake(None, "prod")
    lake.create_topic("orders").append([Record(b"a", b"1")])
    assert service.catalog.list_namespaces() == [("default",)]
    assert lake.info().format == 3
    assert (lake.upgrade().changed, lake.upgrade().changed) == (True, False)

    again = a_lake(None, "prod")
    assert (again.info().format, again.info().topics_by_format) == (4, {"3": 1})
    assert [stream.stream for stream in again.streams()] == ["default"]
    again.delete_topic("orders")
    assert again.create_topic("orders").state().version == 1


def test_a_stream_of_that_name_is_created_and_deleted_and_the_format_stays(service: RestCatalog) -> None:
    """C66: a warehouse cannot be set back."""
    a_lake(None, "prod").upgrade()
    for _ in range(2):
        lake = a_lake(None, "prod")
        lake.create_stream("lithify", {"compression": "none"})
        lake.create_topic("lithify/clicks")
        assert [(stream.stream, stream.topics) for stream in lake.streams()] == [("lithify", 1)]
        assert lake.stream("lithify").delete(topics=True).deleted
        again = a_lake(None, "prod")
        assert (again.info().format, again.streams()) == (4, ())
        with pytest.raises(UnknownStreamError):
            again.stream("lithify")
    left = service.catalog.load_namespace_properties(("lithify",)).keys()
    assert [name for name in left if name.startswith("lithify.")] == [PROPERTY]


def test_what_such_a_catalog_says_is_checked(service: RestCatalog) -> None:
    """C48, C66"""
    a_lake(None, "prod").create_topic("orders")
    a_lake(None, "prod").upgrade()
    stated = {"version": 5, "features": []}
    for text, error in ((json.dumps(stated), UnsupportedFormatError), ("{", DamagedError), ("{}", DamagedError)):
        service.catalog.update_namespace_properties(("lithify",), updates={PROPERTY: text})
        with pytest.raises(error, match="catalog prod: the"):
            a_lake(None, "prod").topic("orders")


def test_one_that_stores_no_properties_cannot_be_upgraded(
    service: RestCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = a_lake(None, "prod")
    lake.create_topic("orders")

    def refused(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("pyiceberg.catalog.rest.RestCatalog.update_namespace_properties", refused)
    with pytest.raises(WarehouseError, match="does not store properties of namespaces"):
        lake.upgrade()


def test_a_new_warehouse_says_it_before_its_first_topic_and_asks_no_more(tmp_path: Path) -> None:
    """C66: a topic that cannot be created leaves a warehouse without topics, which still is a new one."""
    lake = a_lake(str(tmp_path), None)
    lake.create_topic("orders")
    file = tmp_path / ".lithify" / "format.json"
    assert {name: value for name, value in json.loads(file.read_text()).items() if name != "checksum"} == {
        "version": 4,
        "features": ["compacted-logs", "masks"],
    }
    file.unlink()
    lake.create_topic("clicks")
    assert not file.exists()


def test_two_that_create_the_first_topics_at_a_time_say_the_same(tmp_path: Path) -> None:
    one, other = (a_lake(str(tmp_path), None) for _ in range(2))
    one.create_topic("orders")
    put_warehouse_format(other.warehouse.store, NEWEST_FORMAT)
    other.create_topic("clicks")
    assert (one.info(), one.info().format) == (other.info(), 4)
