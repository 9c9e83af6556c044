"""Entries with other bytes than a broker would write: an error that names ledger and entry, and nothing else."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import google_crc32c
import numpy as np
import pytest

from lithify.errors import DamagedError, LithifyError
from lithify.pulsar import compact_entries
from lithify.pulsar.columns import messages_of, properties_of, rewritten, sequence_ids_of, values_of
from lithify.pulsar.format import codecs
from lithify.pulsar.format.batch import last_batch_index, messages_of_batch, value_of
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import framed, unframed
from lithify.pulsar.format.kinds import Kind, is_empty, key_of, kind_of, shown_key
from support.pulsar.entries import Form, Sent, batch, single
from support.pulsar.generated import ENCRYPTED, retained_only

pytestmark = pytest.mark.long

SENT = [Sent("a", b"1", 5, properties={"p": "x"}), Sent("b", b"", 300), Sent(None, b"\x00\x00\x00\x04\x18\x00")]
WHOLE = {
    "single": single(3, 4, SENT[0], Form(broker_index=7)),
    "no checksum": single(3, 4, SENT[0], Form(checksum=False)),
    "chunk": single(3, 4, SENT[0], uuid=b"u", chunk_id=1, num_chunks_from_msg=2),
    "batch": batch(3, 4, SENT),
    "sealed batch": batch(3, 4, SENT, **ENCRYPTED),
    "compacted": RawEntry(*compact_entries([batch(3, 4, SENT)])[0]),
    "retained only": retained_only(unframed(compact_entries([batch(3, 4, SENT)])[0][2])),
    **{f"codec {codec}": batch(3, 4, SENT, Form(codec)) for codec in sorted(codecs.KNOWN - {codecs.NONE})},
}


def resealed(data: bytes) -> bytes:
    """The entry with the right checksum, so that what is behind it is reached."""
    start = data.find(b"\x0e\x01") + 6
    if start < 6 or start > len(data):
        return data
    return data[: start - 4] + struct.pack(">I", google_crc32c.value(data[start:])) + data[start:]


def mutations(raw: RawEntry) -> Iterator[RawEntry]:
    """Every truncation, every byte replaced by some others, with the checksum wrong and right; trailing bytes."""
    data = raw.data
    for changed in (
        *(data[:size] for size in range(len(data))),
        *(data[:at] + bytes([new]) + data[at + 1 :] for at in range(len(data)) for new in _others(data[at])),
        *(data + more for more in (b"\x00", b"\x00" * 8, data)),
    ):
        yield raw._replace(data=changed)
        yield raw._replace(data=resealed(changed))


def _others(byte: int) -> set[int]:
    return {byte ^ 1, byte ^ 0x80, 0x0B, 0xFF} - {byte}


def one_by_one(raw: RawEntry) -> list[tuple[object, ...]] | None:
    """The messages as the plain way reads them; None if it finds the entry damaged."""
    try:
        entry = entry_of(raw)
        kind, outer = kind_of(entry), entry.metadata
        if kind is not Kind.BATCH:
            value = value_of(entry) if kind is Kind.PLAIN else None
            return [(-1, shown_key(entry, kind), outer.event_time, is_empty(entry), False, kind, value)]
        return [
            (
                m.batch_index,
                key_of(m.metadata),
                m.metadata.event_time,
                not m.payload,
                m.metadata.compacted_out,
                0,
                m.payload,
            )
            for m in messages_of_batch(entry)
        ]
    except DamagedError as error:
        assert "3:4" in str(error)
        return None


def in_columns(raw: RawEntry) -> list[tuple[object, ...]] | None:
    try:
        rows = []
        for part in messages_of([raw]):
            columns = (part.batch_index, part.event_time, part.empty, part.compacted_out, part.kind)
            index, *others = (column.tolist() for column in columns)
            rows += list(zip(index, part.key.to_pylist(), *others, values_of(part).to_pylist(), strict=True))
            properties_of(part), sequence_ids_of(part), rewritten(part, np.ones(len(part), np.bool_))
    except DamagedError as error:
        assert "3:4" in str(error)
        return None
    return rows


@pytest.mark.parametrize("name", WHOLE)
def test_a_changed_entry_is_read_in_columns_as_one_by_one_or_found_damaged(name):
    found_damaged = 0
    for raw in mutations(unframed(WHOLE[name].data) if name == "compacted" else WHOLE[name]):
        expected = one_by_one(raw)
        assert in_columns(raw) == expected, raw.data.hex()
        found_damaged += expected is None
    assert found_damaged > len(WHOLE[name].data)  # each truncation, and most that have a wrong checksum


@pytest.mark.parametrize("name", WHOLE)
def test_a_changed_entry_compacts_or_is_named(name):
    other = single(3, 5, Sent("a", b"2"))
    for raw in mutations(WHOLE[name]):
        try:
            view = compact_entries([raw, other])
            assert compact_entries(view) == view
            last_batch_index(entry_of(raw))
        except DamagedError as error:
            assert "3:4" in str(error)


@pytest.mark.parametrize("name", ["single", "no checksum", "batch"])
def test_a_changed_frame_is_one_or_is_refused(name):
    whole = RawEntry(3, 4, framed(WHOLE[name]))
    for raw in mutations(whole):
        try:
            unframed(raw.data)
            list(messages_of([raw]))
        except LithifyError as error:
            assert "3:4" in str(error) or "frame" in str(error)
