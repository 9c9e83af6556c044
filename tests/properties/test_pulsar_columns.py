"""Messages read in columns, and entries written from them, are those of the plain way, entry by entry."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lithify.pulsar.columns import (
    Kind,
    Messages,
    messages_of,
    properties_of,
    rewritten,
    values_of,
    without,
)
from lithify.pulsar.format.batch import messages_of_batch, value_of, without_messages
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import without_frame
from lithify.pulsar.format.kinds import is_empty, key_of, kind_of, shown_key
from support.pulsar.generated import topics


def one_by_one(number: int, raw: RawEntry) -> list[tuple[object, ...]]:
    """The rows of an entry."""
    entry = entry_of(without_frame(raw))
    kind, outer = kind_of(entry), entry.metadata
    if kind is Kind.BATCH:
        return [
            (
                *(number, raw.ledger, raw.entry, m.batch_index, key_of(m.metadata), m.metadata.event_time),
                *(outer.publish_time, not m.payload, m.metadata.compacted_out, True, Kind.PLAIN, m.payload),
                [(pair.key, pair.value) for pair in m.metadata.properties],
            )
            for m in messages_of_batch(entry)
        ]
    value = value_of(entry) if kind is Kind.PLAIN else None
    properties = [(pair.key, pair.value) for pair in outer.properties]
    head = (number, raw.ledger, raw.entry, -1, shown_key(entry, kind), outer.event_time, outer.publish_time)
    flags = (is_empty(entry), False, entry.is_batch, kind)
    return [(*head, *flags, value, properties)]


def in_columns(messages: Messages) -> list[tuple[object, ...]]:
    columns = (
        *(messages.row, messages.ledger, messages.entry, messages.batch_index, messages.key),
        *(messages.event_time, messages.publish_time, messages.empty, messages.compacted_out, messages.batched),
        *(messages.kind, values_of(messages), properties_of(messages)),
    )
    lists = [column.tolist() if isinstance(column, np.ndarray) else column.to_pylist() for column in columns]
    return list(zip(*lists, strict=True))


@given(topics())
def test_the_columns_are_the_messages_one_by_one(entries):
    expected = [row for number, raw in enumerate(entries) for row in one_by_one(number, raw)]
    assert [row for part in messages_of(entries) for row in in_columns(part)] == expected


@given(topics(), st.data())
def test_a_part_of_entries_is_written_as_they_are_one_by_one(entries, data):
    for part in messages_of(entries):
        alive = np.array(data.draw(st.lists(st.booleans(), min_size=len(part), max_size=len(part))), np.bool_)
        written = rewritten(part, alive)
        for number, raw in enumerate(part.entries):
            entry, rows = entry_of(raw), part.row == number
            if kind_of(entry) is Kind.BATCH:
                dead = set(part.batch_index[rows & ~alive].tolist())
                assert written[number] == without_messages(entry, dead) == without(entry.raw, dead)
            else:
                assert written[number] == (entry.raw.data if alive[rows].all() else None)
