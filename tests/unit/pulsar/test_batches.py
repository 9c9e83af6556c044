"""Batches in both layouts, rewritten and compacted again, and the last message of an entry (PIP-429)."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.errors import DamagedError
from lithify.pulsar.columns import messages_of
from lithify.pulsar.columns import rewritten as columns_rewritten
from lithify.pulsar.format.batch import (
    LARGEST_BYTES,
    PLACEHOLDER,
    last_batch_index,
    messages_of_batch,
    without_messages,
)
from lithify.pulsar.format.codecs import KNOWN, ZSTD
from lithify.pulsar.format.entry import Entry, RawEntry, entry_of, joined
from lithify.pulsar.format.wire_pb2 import MessageMetadata
from support.pulsar.entries import Form, Sent, batch, single, stored_in_batch
from support.pulsar.generated import ENCRYPTED, LIKE_A_MESSAGE, retained_only

FOUR = [Sent("a", b"0"), Sent("b", b"1"), Sent("c", b"22"), Sent("d", b"")]


def rewritten(raw: RawEntry, *dead: int) -> RawEntry:
    data = without_messages(entry_of(raw), set(dead))
    assert data is not None
    return raw._replace(data=data)


def alive(raw: RawEntry) -> list[tuple[int, bytes]]:
    return [(m.batch_index, m.payload) for m in messages_of_batch(entry_of(raw)) if not m.metadata.compacted_out]


@pytest.mark.parametrize("codec", sorted(KNOWN))
@pytest.mark.parametrize("layout", ["placeholders", "retained only"])
def test_a_compacted_batch_is_compacted_again(codec, layout):
    once = rewritten(batch(1, 0, FOUR, Form(codec, broker_index=5)), 0)
    if layout == "retained only":
        once = retained_only(once)
    twice = rewritten(once, 2)
    entry = entry_of(twice)
    assert alive(once) == [(1, b"1"), (2, b"22"), (3, b"")]
    assert alive(twice) == [(1, b"1"), (3, b"")]
    assert [m.batch_index for m in messages_of_batch(entry)] == [0, 1, 2, 3]
    assert list(entry.metadata.compacted_batch_indexes) == [1, 3]
    assert entry.metadata.num_messages_in_batch == 4
    assert entry.metadata.compression == codec
    assert entry.broker_metadata == entry_of(once).broker_metadata


def test_placeholders_have_the_bytes_of_pulsars():
    entry = entry_of(rewritten(batch(1, 0, FOUR), 0, 1, 3))
    assert entry.payload == PLACEHOLDER * 2 + stored_in_batch(FOUR[2]) + PLACEHOLDER
    assert bytes.fromhex("f80102") in entry.metadata_bytes  # field 31, not packed


def test_indexes_that_were_packed_are_read():
    entry = entry_of(retained_only(rewritten(batch(1, 0, FOUR), 1, 2)))
    packed = entry.metadata_bytes.replace(bytes.fromhex("f80100f80103"), bytes.fromhex("fa01020003"))
    assert packed != entry.metadata_bytes
    raw = entry.raw._replace(data=joined(None, packed, entry.payload))
    assert alive(raw) == [(0, b"0"), (3, b"")]
    (part,) = messages_of([raw])
    assert part.batch_index.tolist() == [0, 3]


def test_a_batch_without_messages_alive_is_none():
    assert without_messages(entry_of(batch(1, 0, FOUR)), {0, 1, 2, 3}) is None


def test_a_batch_that_loses_nothing_keeps_its_payload_and_gets_field_31():
    before = entry_of(batch(1, 0, FOUR, Form(ZSTD)))
    after = entry_of(rewritten(before.raw))
    assert after.payload == before.payload
    assert list(after.metadata.compacted_batch_indexes) == [0, 1, 2, 3]


def test_a_batch_that_field_31_would_make_too_large_stays_as_it_is():
    """C54: near the limit on messages, bookies would not take it."""
    many = [Sent("k", b"v")] * 3000
    padding = LARGEST_BYTES - len(batch(1, 0, many, Form(broker_index=7)).data) - 100
    before = batch(1, 0, [*many, Sent("k", bytes(padding))], Form(broker_index=7))
    assert len(before.data) <= LARGEST_BYTES < len(before.data) + 2 * len(many)
    assert rewritten(before).data == before.data
    (part,) = messages_of([before])
    assert columns_rewritten(part, np.ones(len(part), np.bool_)) == [before.data]
    small = rewritten(before, len(many))  # without the large message it has room for the field
    assert len(entry_of(small).metadata.compacted_batch_indexes) == len(many)


def test_fields_that_are_not_known_survive():
    unknown = bytes.fromhex("880205920202abcd")  # numbers 33 and 34
    raw = batch(1, 0, FOUR)
    metadata = MessageMetadata.FromString(entry_of(raw).metadata_bytes + unknown)
    entry = entry_of(raw)._replace(metadata=metadata)
    data = without_messages(entry, {0})
    assert data is not None
    assert entry_of(raw._replace(data=data)).metadata_bytes.endswith(unknown)


SEALED = batch(1, 0, FOUR, **ENCRYPTED)
LAST = [
    ("alone", single(1, 0, FOUR[0]), -1),
    ("a batch of one", batch(1, 0, FOUR[:1]), -1),
    ("a batch", batch(1, 0, FOUR), 3),
    ("an encrypted batch", SEALED, 3),
    ("an unknown codec", batch(1, 0, FOUR, compression=77), 3),
    ("compacted", rewritten(batch(1, 0, FOUR), 3), 2),
    ("the other layout", retained_only(rewritten(batch(1, 0, FOUR), 2, 3)), 1),
    ("a damaged payload", batch(1, 0, FOUR, Form(ZSTD), uncompressed_size=5), 3),
]


@pytest.mark.parametrize(("raw", "last"), [case[1:] for case in LAST], ids=[case[0] for case in LAST])
def test_the_last_message_of_an_entry(raw, last):
    assert last_batch_index(entry_of(raw)) == last


def test_the_last_message_without_field_31_is_the_last_that_was_not_compacted_out():
    """As Pulsar 4.0 writes compacted batches."""
    entry = without_field_31(rewritten(batch(1, 0, FOUR), 2, 3))
    assert last_batch_index(entry) == 1


def test_the_last_message_is_found_without_decompressing():
    entry = entry_of(rewritten(batch(1, 0, FOUR, Form(ZSTD)), 3))
    assert last_batch_index(entry._replace(payload=b"")) == 2


def without_field_31(raw: RawEntry) -> Entry:
    entry = entry_of(raw)
    entry.metadata.ClearField("compacted_batch_indexes")
    return entry


@pytest.mark.parametrize("kept", [[0, 0], [2, 1], [-1, 1], [1, 4]])
def test_indexes_out_of_order_are_found_damaged(kept):
    raw = batch(1, 0, FOUR, compacted_batch_indexes=kept)
    with pytest.raises(DamagedError, match=r"1:0 .* not in order"):
        messages_of_batch(entry_of(raw))
    with pytest.raises(DamagedError, match=r"1:0 .* not in order"):
        list(messages_of([raw]))


@pytest.mark.parametrize(("count", "found"), [(2, "more than 2"), (5, "4")])
def test_a_batch_of_another_number_of_messages_is_found_damaged(count, found):
    raw = batch(1, 0, FOUR, num_messages_in_batch=count)
    with pytest.raises(DamagedError, match=f"has {found} messages, but its metadata has a count of {count}"):
        messages_of_batch(entry_of(raw))
    with pytest.raises(DamagedError, match=f"has {found} messages, but its metadata has a count of {count}"):
        list(messages_of([raw]))


@pytest.mark.parametrize("value", [LIKE_A_MESSAGE, LIKE_A_MESSAGE * 20, bytes(70_000), bytes([0, 0, 0, 2]) * 5])
@pytest.mark.parametrize("properties", [{}, {"p": "v" * 70_000}], ids=["", "long"])
def test_values_that_look_like_messages_are_values(value, properties):
    """Some are walked through, and some are so many that the batch is read one by one, as is long metadata."""
    sent = [Sent(f"k{number}", value, properties=properties) for number in range(5)]
    (part,) = messages_of([batch(1, 0, sent), batch(1, 1, FOUR)])
    assert part.key.to_pylist() == [b"k0", b"k1", b"k2", b"k3", b"k4", b"a", b"b", b"c", b"d"]
    assert part.batch_index.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
