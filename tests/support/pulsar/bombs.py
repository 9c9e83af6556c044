"""Entries of a few kilobytes that would take very much memory to read, and what comes of reading them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lithify.errors import DamagedError
from lithify.pulsar import compact_entries
from lithify.pulsar.columns import messages_of, properties_of, rewritten, values_of
from lithify.pulsar.format.codecs import PAYLOAD_LIMIT_BYTES, ZSTD, compressed
from lithify.pulsar.format.entry import BATCH_LIMIT, RawEntry, joined
from lithify.pulsar.format.wire_pb2 import MessageMetadata
from support.pulsar.entries import Sent, stored_in_batch

SMALLEST = bytes.fromhex("000000021800")
"""A message of a batch with nothing in it."""

LARGE = PAYLOAD_LIMIT_BYTES


def entry(data: bytes, count: int, *, kept: Iterable[int] = ()) -> RawEntry:
    metadata = MessageMetadata(producer_name=b"p", sequence_id=0, publish_time=0, compression=ZSTD)
    metadata.num_messages_in_batch, metadata.uncompressed_size = count, len(data)
    metadata.compacted_batch_indexes.extend(kept)
    return RawEntry(6, 7, joined(None, metadata.SerializeToString(), compressed(ZSTD, data)))


def bombs() -> dict[str, RawEntry]:
    """By what they consist of. Each is far below the size that brokers refuse."""
    starts = bytes.fromhex("0000000212")  # not quite messages
    return {
        "zeros": entry(bytes(LARGE), 1),
        "starts": entry(starts * (LARGE // len(starts)), BATCH_LIMIT),
        "too many messages": entry(SMALLEST * (LARGE // len(SMALLEST)), 1),
        "many messages": entry(SMALLEST * BATCH_LIMIT, BATCH_LIMIT),
        "many placeholders": entry(stored_in_batch(Sent("k")), BATCH_LIMIT, kept=[BATCH_LIMIT - 1]),
        "one large value": entry(stored_in_batch(Sent("k", bytes(LARGE - 100))), 1),
        "long metadata": entry(stored_in_batch(Sent("k", properties={"p": "v" * (LARGE // 2)})), 1),
    }


def read_all() -> dict[str, str]:
    """What comes of reading each: "damaged", or the number of its messages."""
    return {name: _read(raw) for name, raw in bombs().items()}


def _read(raw: RawEntry) -> str:
    try:
        (part,) = messages_of([raw])
        values_of(part), properties_of(part)
        (written,) = rewritten(part, np.ones(len(part), np.bool_))
    except DamagedError as error:
        assert "6:7" in str(error)
        return "damaged"
    assert written is not None
    return str(len(part))


def compact_all() -> dict[str, str]:
    """What comes of compacting each by the reference: "damaged", or the number of its entries."""
    return {name: _compacted(raw) for name, raw in bombs().items() if name != "many messages"}


def _compacted(raw: RawEntry) -> str:
    try:
        return str(len(compact_entries([raw])))
    except DamagedError as error:
        assert "6:7" in str(error)
        return "damaged"
