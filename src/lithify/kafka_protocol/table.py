"""The tables: which fields a request, response or metadata record has, from which version on, and of which type.

They are data of Apache Kafka: the files name the jar and the license, and `scripts/kafka_layouts.py` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

ARRAY: Final = "[]"
STRUCT: Final = "struct"
_NOTHING: Final[Mapping[str, Any]] = {"bytes": b"", "records": b"", "uuid": bytes(16)}
"""Defaults that JSON cannot name."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `last` is None if it is in all later versions; `nullable` is the first version where it may be null.

    A field with a tag is only written if it differs from its default.
    """

    name: str
    kind: str
    first: int
    last: int | None
    default: Any
    nullable: int | None
    tag: int | None
    fields: tuple[Field, ...]

    def is_in(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)

    def may_be_null(self, version: int) -> bool:
        return self.nullable is not None and version >= self.nullable


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request and its response, in the versions from `first` to `last`.

    `flexible` is the first version with tags and short lengths (KIP-482), if there is any.
    """

    key: int
    name: str
    first: int
    last: int
    flexible: int | None
    request: tuple[Field, ...]
    response: tuple[Field, ...]

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One kind of record in the metadata log of a cluster, in the versions from `first` to `last`."""

    name: str
    first: int
    last: int
    fields: tuple[Field, ...]


@cache
def apis() -> Mapping[int, Api]:
    """All APIs of the table, by their keys."""
    return {key: _api(key, row) for key, row in _rows("layouts.json").items()}


@cache
def record_kinds() -> Mapping[int, RecordKind]:
    """All kinds of metadata records that are read, by their numbers."""
    return {number: _kind(row) for number, row in _rows("metadata.json").items()}


def _rows(name: str) -> Mapping[int, Any]:
    table = json.loads(files(__package__).joinpath(name).read_text("utf-8"))
    return {int(key): row for key, row in table.items() if key != "source"}


def _api(key: int, row: Mapping[str, Any]) -> Api:
    first, last = row["versions"]
    request, response = (tuple(map(_field, row[name])) for name in ("request", "response"))
    return Api(key, row["name"], first, last, row["flexible"], request, response)


def _kind(row: Mapping[str, Any]) -> RecordKind:
    first, last = row["versions"]
    return RecordKind(row["name"], first, last, tuple(map(_field, row["fields"])))


def _field(row: list[Any]) -> Field:
    name, kind, first, last, default, *more = row
    rest: Mapping[str, Any] = more[0] if more else {}
    known = default if default is None else _NOTHING.get(kind, default)
    fields = tuple(map(_field, rest.get("fields", ())))
    return Field(name, kind, first, last, known, rest.get("nullable"), rest.get("tag"), fields)
