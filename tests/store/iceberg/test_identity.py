"""The identity of a warehouse is made once, whatever another program does in between (C73)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema

from lithify.store.iceberg.catalog.identity import NAMESPACES, PROPERTY, made_identity, stored_identity

OWN, BESIDE = NAMESPACES
STREAM = {"lithify.stream": "true"}
MOST_CALLS = 20


class StruckCatalog:
    """A catalog that calls `strike` before its call of that number."""

    def __init__(self, catalog: Catalog, number: int, strike: Callable[[], object]) -> None:
        self._catalog, self._left, self._strike = catalog, number, strike
        self.struck = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._catalog, name)

        def called(*given: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self.struck = True
                self._strike()
            return real(*given, **named)

        return called


BEFORE: dict[str, Callable[[Catalog], object]] = {
    "nothing": lambda _: None,
    "a stream of that name": lambda catalog: catalog.create_namespace(OWN, STREAM),
    "a topic in a stream of that name": lambda catalog: (
        catalog.create_namespace(OWN),
        catalog.create_table("lithify_warehouse.t", Schema()),
    ),
    "the identity lost": lambda catalog: (
        made_identity(catalog, lambda: "lost"),
        catalog.update_namespace_properties(OWN, removals={PROPERTY}, updates=STREAM),
    ),
}


@pytest.fixture
def catalogs(tmp_path: Path) -> Iterator[Callable[[], Catalog]]:
    """Opens new ones."""
    numbers = count()

    def opened() -> Catalog:
        file = tmp_path / f"catalog{next(numbers)}.db"
        return SqlCatalog("lithify", uri=f"sqlite:///{file}", warehouse=f"file://{tmp_path}")

    yield opened


@pytest.mark.parametrize("before", BEFORE)
def test_two_that_make_it_at_the_same_time_agree_c73(before: str, catalogs: Callable[[], Catalog]) -> None:
    """One does it all between any two calls of the other."""
    for number in range(1, MOST_CALLS):
        BEFORE[before](catalog := catalogs())
        if not is_struck_at(number, catalog):
            return
    raise AssertionError("it calls the catalog without end")


def is_struck_at(number: int, catalog: Catalog) -> bool:
    """Whether it makes so many calls."""
    others: list[str | None] = []
    struck = StruckCatalog(catalog, number, lambda: others.append(made_identity(catalog, lambda: "b")))
    found = made_identity(struck, lambda: "a")  # type: ignore[arg-type]
    assert found == stored_identity(catalog) is not None
    assert not others or others == [found], number
    return struck.struck


def test_a_program_that_may_create_no_namespace_adds_it_to_one_c73(catalogs: Callable[[], Catalog]) -> None:
    class Narrow(StruckCatalog):
        def create_namespace(self, namespace: object, properties: object = None) -> None:
            raise PermissionError(namespace)

    narrow = Narrow(catalog := catalogs(), 0, lambda: None)
    assert made_identity(narrow, lambda: "a") is None  # type: ignore[arg-type]
    catalog.create_namespace(OWN)
    assert made_identity(narrow, lambda: "a") == stored_identity(catalog) == "aa"  # type: ignore[arg-type]
    assert made_identity(catalog, lambda: "b") == "aa"


def test_it_is_beside_a_stream_of_that_name_and_stays_when_that_is_dropped_c73(catalogs: Callable[[], Catalog]) -> None:
    catalog = catalogs()
    catalog.create_namespace(OWN, STREAM)
    found = made_identity(catalog, lambda: "a")
    assert catalog.load_namespace_properties(BESIDE)[PROPERTY] == found
    catalog.drop_namespace(OWN)
    assert made_identity(catalog, lambda: "b") == stored_identity(catalog) == found
