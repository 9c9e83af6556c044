"""Metadata of chunks, as Pulsar's producers write it (C53)."""

from __future__ import annotations

from functools import cache

from lithify.pulsar.format.wire_pb2 import MessageMetadata


@cache
def chunk_metadata(key: bytes | None, chunk_id: int = 0) -> bytes:
    """That of a chunk of a large message with this key, one of two."""
    metadata = MessageMetadata(producer_name=b"p", sequence_id=1, publish_time=2, uuid=b"p-1", num_chunks_from_msg=2)
    metadata.chunk_id = chunk_id
    if key is not None:
        metadata.partition_key = key
    return metadata.SerializeToString()
