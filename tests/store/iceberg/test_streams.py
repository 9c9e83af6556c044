"""Streams over catalogs that store no properties of namespaces, and over ones that others write to (C56)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog

from lithify.errors import RefusedError, WarehouseError
from lithify.model.names import TopicName
from lithify.store.iceberg.catalog.embedded import EmbeddedCatalog
from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, Place, an_iceberg_place

TOPIC = TopicName("eu", "orders")


class Changed:
    """A catalog of which some methods do something else."""

    def __init__(self, real: Any, others: dict[str, Callable[..., Any]]) -> None:
        self._real = real
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return self._others.get(name) or getattr(self._real, name)


class ChangedSource(EmbeddedCatalog):
    """An embedded catalog that is changed."""

    others: dict[str, Callable[..., Any]]

    def existing(self) -> Any:
        catalog = super().existing()
        return None if catalog is None else Changed(catalog, self.others)

    def created(self) -> Any:
        super().created()
        return self.existing()


def refused(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("Server does not support endpoint: POST /v1/{prefix}/namespaces/{namespace}/properties")


@pytest.fixture
def source(tmp_path: Path) -> ChangedSource:
    return ChangedSource(str(tmp_path / "warehouse"))


@pytest.fixture
def place(source: ChangedSource, tmp_path: Path) -> Place:
    return an_iceberg_place(tmp_path, FakeClock(NOW_MS), source)


def test_a_catalog_without_properties_of_namespaces_has_streams_without_attributes(
    source: ChangedSource, place: Place
) -> None:
    """C56: it says so where one is to be stored, and topics can be created in it."""
    source.others = dict.fromkeys(
        ("create_namespace", "load_namespace_properties", "update_namespace_properties"), refused
    )
    place.create(TOPIC)
    assert (place.store.streams(), place.store.stream_attributes(["eu"])) == (("eu",), {})
    for call in (
        lambda: place.store.create_stream("asia", {"ttl": "7"}),
        lambda: place.store.change_stream("eu", {"ttl": "7"}, []),
    ):
        with pytest.raises(WarehouseError, match="does not store properties of namespaces"):
            call()


def test_of_two_that_create_a_stream_at_once_one_is_told(source: ChangedSource, place: Place) -> None:
    """C56: its attributes are those of the other, not a mixture."""

    def overtaken(namespace: Any, properties: Any) -> None:
        other = EmbeddedCatalog(source.where).created()
        other.create_namespace(namespace, {"lithify.stream": "true", "lithify.stream.ttl": "9"})
        raise OSError("UNIQUE constraint failed")

    source.others = {"create_namespace": overtaken}
    with pytest.raises(RefusedError, match="exists already"):
        place.store.create_stream("eu", {"compact": "true"})
    assert place.store.stream_attributes(["eu"]) == {"eu": {"ttl": "9"}}


def test_a_namespace_of_another_program_is_no_stream_until_it_is_created(iceberg: Place, foreign: Catalog) -> None:
    """C56: and then it keeps the properties that it had."""
    foreign.create_namespace("eu", {"owner": "them"})
    assert iceberg.store.streams() == ()
    iceberg.store.create_stream("eu", {"ttl": "7"})
    assert iceberg.store.stream_attributes(["eu"]) == {"eu": {"ttl": "7"}}
    assert foreign.load_namespace_properties("eu") == {
        "owner": "them",
        "lithify.stream": "true",
        "lithify.stream.ttl": "7",
    }
