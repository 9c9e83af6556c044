"""Receives the batches of several callers, each as if it came alone after those before it (C16).

    batches  a b c ──► columns ──► abc ──► rules, partitions, sorted once ──► 0: aaaabcc     3: abbc
                                                                                 aaaa b cc      a bb c

What takes time is the same for three records as for thousands: so all are checked at once. If anything is refused they
are checked one by one, as each is to have its own error, an unexpected one as well. So are batches with message ids,
which ascend in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lithify.columnar.arrivals.arrived_columns import Given, given_batches, given_schema
from lithify.columnar.arrivals.incoming import Arrival
from lithify.errors import LithifyError
from lithify.errors.defects import as_lithify_error
from lithify.model.staged import Destination

TOGETHER_RECORDS = 128 * 1024
TOGETHER_BYTES = 64 * 2**20
"""More are checked one by one: it takes no longer, and no second copy of them."""


@dataclass(frozen=True, slots=True)
class Share:
    """The records of one batch in one partition: rows of a table that may have records of other batches as well."""

    table: pa.Table
    start: int
    records: int


Received: TypeAlias = Mapping[int, Share] | LithifyError


def receive_each(batches: Sequence[Given], topic: Destination, *, now_ms: int) -> list[Received]:
    """For each batch its records by partition, or the error with which it is refused."""
    return _together(batches, topic, now_ms) or _one_by_one(batches, topic, now_ms)


def _together(batches: Sequence[Given], topic: Destination, now_ms: int) -> list[Received] | None:
    """None if they are to be checked one by one."""
    if len(batches) < 2 or topic.settings.message_ids == "pulsar" or sum(map(len, batches)) > TOGETHER_RECORDS:
        return None
    schema = given_schema(topic.settings)
    try:
        pieces = [list(given_batches(batch, schema)) for batch in batches]
        every = [piece for of_batch in pieces for piece in of_batch]
        if not every or sum(piece.nbytes for piece in every) > TOGETHER_BYTES:
            return None
        piece = Arrival(topic, now_ms, keep_offsets=False).sorted(pa.concat_batches(every), 0)
    except Exception:
        return None
    of_rows = np.repeat(np.arange(len(batches)), [sum(map(len, of_batch)) for of_batch in pieces])[piece.order]
    received: list[dict[int, Share]] = [{} for _ in batches]
    for partition, start, end in zip(piece.partitions, piece.starts, piece.ends, strict=True):
        table = pa.Table.from_batches([piece.records.slice(start, end - start)])
        here = of_rows[start:end]
        firsts = [0, *(np.flatnonzero(np.diff(here)) + 1).tolist()]
        for first, last in zip(firsts, [*firsts[1:], len(here)], strict=True):
            received[int(here[first])][partition] = Share(table, first, last - first)
    return list(received)


def _one_by_one(batches: Sequence[Given], topic: Destination, now_ms: int) -> list[Received]:
    keyless, received = None, list[Received]()
    for batch in batches:
        arrival = Arrival(topic, now_ms, keep_offsets=False, keyless=keyless)
        try:
            tables = arrival.received(batch)
        except Exception as error:
            received.append(as_lithify_error(error, topic.name))
        else:
            keyless = arrival.keyless
            received.append({partition: Share(table, 0, table.num_rows) for partition, table in tables.items()})
    return received
