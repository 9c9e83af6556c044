"""Which entries are chunks, and of which keys: as Protocol Buffers and `pulsar.format.kinds` have it (C53)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.model.message import Chunk, chunk_of
from lithify.pulsar.format.wire_pb2 import MessageMetadata
from support.chunks import chunk_metadata

SMALL = st.none() | st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3)
FIELDS = st.fixed_dictionaries(
    {
        "partition_key": st.none() | st.binary(max_size=300),
        "uuid": st.none() | st.binary(max_size=20),
        "num_chunks_from_msg": SMALL,
        "num_messages_in_batch": st.none() | st.none() | SMALL,
        "marker_type": st.none() | st.none() | SMALL,
        "event_time": st.none() | st.integers(0, 2**64 - 1),
        "ordering_key": st.none() | st.binary(max_size=20),
    }
)


@given(FIELDS)
def test_metadata_is_read_as_protocol_buffers_read_it(fields):
    metadata = MessageMetadata(producer_name=b"p", sequence_id=2**64 - 1, publish_time=1)
    for name, value in fields.items():
        if value is not None:
            setattr(metadata, name, value)
    metadata.properties.add(key=b"k", value=b"v")
    is_chunk = (
        not metadata.HasField("marker_type")
        and not metadata.HasField("num_messages_in_batch")
        and metadata.num_chunks_from_msg > 1
        and metadata.HasField("uuid")
    )
    assert chunk_of(metadata.SerializeToString()) == (Chunk(fields["partition_key"]) if is_chunk else None)


@given(st.binary(max_size=60))
def test_any_bytes_are_metadata_of_something(data):
    """A program may append anything; what shows no chunk may hide any key."""
    found = chunk_of(data)
    if found is not None:
        metadata = MessageMetadata.FromString(
            data + MessageMetadata(producer_name=b"", sequence_id=0).SerializePartialToString() + b"\x18\x01"
        )
        assert metadata.num_chunks_from_msg > 1


@pytest.mark.parametrize("cut", range(len(chunk_metadata(b"key"))))
def test_metadata_that_is_cut_off_shows_no_chunk_or_one_without_its_rest(cut):
    whole = chunk_metadata(b"key")
    assert chunk_of(whole[:cut]) in (None, Chunk(b"key"))
    assert (chunk_of(whole), chunk_of(None), chunk_of(b"")) == (Chunk(b"key"), None, None)


@pytest.mark.parametrize("odd", [b"\x32\xff\xff\xff\xff\x0f", b"\x33", b"\x36", b"\x80" * 11, b"\x31\x00", b"\x35\x00"])
def test_what_is_no_message_of_protocol_buffers_shows_no_chunk(odd):
    assert chunk_of(chunk_metadata(b"key") + odd) is None
