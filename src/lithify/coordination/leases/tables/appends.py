"""The tables of appends with idempotency keys.

lithify_appends         scope, stream, topic, append_key (primary key)   request, chain, run, after, places, ...
lithify_append_floors   scope (primary key)                              floor_ms
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import BigInteger, Column, Index, MetaData, String, Table

from lithify.coordination.leases.stored_rows import unreadable
from lithify.model.topic.append_note import AppendNote, Placed

APPENDS = Table(
    "lithify_appends",
    MetaData(),
    Column("scope", String, primary_key=True),
    Column("stream", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("append_key", String, primary_key=True),
    Column("request", String, nullable=False),
    Column("chain", String, nullable=False),
    Column("run", String, nullable=False),
    Column("after", String, nullable=False),
    Column("places", String, nullable=False),
    Column("version", BigInteger),
    Column("begun_ms", BigInteger, nullable=False),
)
BY_RUN = Index("lithify_appends_by_run", APPENDS.c.scope, APPENDS.c.run)
BY_AGE = Index("lithify_appends_by_age", APPENDS.c.scope, APPENDS.c.begun_ms)
FLOORS = Table(
    "lithify_append_floors",
    MetaData(),
    Column("scope", String, primary_key=True),
    Column("floor_ms", BigInteger, nullable=False),
)
"""Requests that began earlier are forgotten."""


def places_text(note: AppendNote) -> str:
    """The places of a note as a row has them: `[[partition, start, records], ...]`."""
    return json.dumps([[place.partition, place.start, place.records] for place in note.places])


def note_of(row: Any) -> AppendNote:
    """The note in a row that was `checked`. Raises `CoordinationError`."""
    try:
        places = tuple(Placed(*map(int, place)) for place in json.loads(row.places))
    except (ValueError, TypeError):
        raise unreadable(APPENDS, row._asdict(), "places") from None
    return AppendNote(row.append_key, row.request, row.chain, row.run, row.after, places, row.begun_ms, row.version)
