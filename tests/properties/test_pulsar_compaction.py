"""What a compaction leaves is for every reader the same as all that was there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from lithify.pulsar import compact_entries
from lithify.pulsar.compaction.rules import KeyedMessage, replaces
from lithify.pulsar.format.batch import messages_of_batch
from lithify.pulsar.format.entry import Entry, RawEntry, entry_of
from lithify.pulsar.format.framing import framed, without_frame
from lithify.pulsar.format.kinds import Kind, is_empty, key_of, kind_of
from support.pulsar.generated import KINDS, topics

ORDERS = st.sampled_from(["publish", "event-time"])


def compacted(entries: Iterable[RawEntry], order: str, *, retain: bool = False) -> list[RawEntry]:
    return [RawEntry(*entry) for entry in compact_entries(entries, order=order, retain_null_key=retain)]


def opened(entry: Entry) -> Entry:
    """An entry as the holder of its key reads it. What is sealed in tests is not really encrypted."""
    entry.metadata.ClearField("encryption_keys")
    if entry.metadata.compression not in range(5):
        entry.metadata.ClearField("compression")
    return entry


class Seen(NamedTuple):
    """A message as a reader gets it: its id, its key, and all that is stored of it."""

    id: tuple[int, int, int]
    key: bytes | None
    rule: KeyedMessage
    stored: bytes


def read(entries: Iterable[RawEntry]) -> Iterator[Seen]:
    """All messages in order, of sealed batches too, and chunked ones once they are complete."""
    chunks: dict[tuple[object, ...], int] = {}
    for raw, number in zip(map(without_frame, entries), count(), strict=False):
        entry = opened(entry_of(raw))
        metadata, position = entry.metadata, (number,)
        match kind_of(entry):
            case Kind.BATCH:
                for m in messages_of_batch(entry):
                    if not m.metadata.compacted_out:
                        rule = KeyedMessage((number, m.batch_index), not m.payload, m.metadata.event_time, True)
                        yield Seen((raw.ledger, raw.entry, m.batch_index), key_of(m.metadata), rule, m.stored)
            case Kind.CHUNK:
                unit = (metadata.producer_name, metadata.uuid, key_of(metadata))
                expected, chunk_id = chunks.get(unit, 0), metadata.chunk_id
                if chunk_id == metadata.num_chunks_from_msg - 1 == expected:
                    rule = KeyedMessage(position, False, metadata.event_time, False)
                    yield Seen((raw.ledger, raw.entry, -1), key_of(metadata), rule, entry.payload)
                    chunks[unit] = 0
                elif chunk_id in (0, expected):
                    chunks[unit] = chunk_id + 1
                elif chunk_id > expected:
                    chunks[unit] = 0
            case Kind.MARKER:
                pass
            case _:
                rule = KeyedMessage(position, is_empty(entry), metadata.event_time, False)
                yield Seen((raw.ledger, raw.entry, -1), key_of(metadata), rule, entry.payload)


def table(entries: Iterable[RawEntry], order: str) -> dict[bytes, tuple[int, int, int]]:
    """The id of the message that holds each key, for a reader that goes through all of them in that order."""
    held: dict[bytes, Seen] = {}
    for message in read(entries):
        key = message.key
        if key is None or (key in held and not replaces(message.rule, held[key].rule, order)):
            continue
        if message.rule.empty:
            held.pop(key, None)
        else:
            held[key] = message
    return {key: message.id for key, message in held.items()}


@given(topics(), ORDERS)
def test_a_reader_gets_the_same_table(entries, order):
    assert table(compacted(entries, order), order) == table(entries, order)


@given(topics(kinds=("single", "single", "batch", "sealed batch"), keys=("a", "b")), ORDERS)
def test_a_reader_who_can_open_sealed_batches_gets_the_same_table(entries, order):
    """What they hide is neither lost nor does it come back."""
    assert table(compacted(entries, order), order) == table(entries, order)


@given(topics(), ORDERS, st.booleans())
def test_a_second_compaction_changes_nothing(entries, order, retain):
    once = compacted(entries, order, retain=retain)
    assert compacted(once, order, retain=retain) == once


@given(topics(), st.integers(0, 8), ORDERS, st.booleans())
def test_a_view_and_what_came_after_it_compact_to_the_same_as_all(entries, end, order, retain):
    view = compacted(entries[:end], order, retain=retain)
    assert compacted([*view, *entries[end:]], order, retain=retain) == compacted(entries, order, retain=retain)


@given(topics(), ORDERS)
def test_a_message_keeps_its_id_and_every_byte(entries, order):
    before = {message.id: message for message in read(entries)}
    for message in read(compacted(entries, order)):
        assert message.stored == before[message.id].stored
        assert message.key == before[message.id].key


@given(topics(), st.randoms())
def test_order_and_frames_of_what_is_given_do_not_matter(entries, random):
    other = [raw._replace(data=framed(without_frame(raw))) for raw in entries]
    random.shuffle(other)
    assert compact_entries(other) == compact_entries(entries)


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_every_kind_of_entry_is_generated(kind):
    """So that no strategy above is blind to one."""
    find(
        topics(kinds=[kind]),
        lambda entries: len(compact_entries(entries)) >= (kind not in ("marker", "chunk")),
        settings=settings(phases=[Phase.generate], derandomize=True, database=None),
    )
