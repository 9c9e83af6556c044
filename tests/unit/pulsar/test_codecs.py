"""Payloads of every codec come back, and a payload of another size than its metadata says never does."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest

from lithify.errors import DamagedError
from lithify.pulsar.columns import messages_of
from lithify.pulsar.format.batch import value_of
from lithify.pulsar.format.codecs import (
    KNOWN,
    LZ4,
    NONE,
    PAYLOAD_LIMIT_BYTES,
    SNAPPY,
    ZLIB,
    ZSTD,
    CodecError,
    compressed,
    decompressed,
)
from lithify.pulsar.format.entry import RawEntry, entry_of
from support.pulsar.entries import Form, Sent, batch, single

DATA = b"some text, some text, some more text" * 20 + bytes(range(256))


@pytest.mark.parametrize("data", [b"", b"x", DATA, bytes(100_000)], ids=len)
@pytest.mark.parametrize("codec", sorted(KNOWN))
def test_a_payload_comes_back(codec, data):
    assert decompressed(codec, compressed(codec, data), len(data)) == data


@pytest.mark.parametrize("wrong", [0, 1, len(DATA) - 1, len(DATA) + 1, 2 * len(DATA), 2**31, 2**32 - 1])
@pytest.mark.parametrize("codec", [LZ4, ZLIB, ZSTD, SNAPPY])
def test_a_payload_of_another_size_is_refused(codec, wrong):
    with pytest.raises(CodecError, match="payload"):
        decompressed(codec, compressed(codec, DATA), wrong)


def test_streams_that_are_not_finished_are_read():
    """Pulsar's Java client flushes its ZLIB streams, but does not finish them."""
    stream = zlib.compressobj()
    payload = stream.compress(DATA) + stream.flush(zlib.Z_SYNC_FLUSH)
    assert decompressed(ZLIB, payload, len(DATA)) == DATA


@pytest.mark.parametrize("codec", [LZ4, ZLIB, ZSTD, SNAPPY])
def test_what_would_take_too_much_memory_is_refused_before_it_does(codec):
    """Arrow's own memory is not traced; that of an output which is never asked for is not there."""
    payload = compressed(codec, bytes(8 << 20))
    tracemalloc.start()
    for size in (PAYLOAD_LIMIT_BYTES + 1, 2**32 - 1):
        with pytest.raises(CodecError, match="payload"):
            decompressed(codec, payload, size)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("codec", [LZ4, ZLIB, SNAPPY])
def test_a_few_bytes_cannot_ask_for_the_limit(codec):
    with pytest.raises(CodecError, match="cannot become"):
        decompressed(codec, compressed(codec, b"x"), PAYLOAD_LIMIT_BYTES)


def test_the_entry_is_named():
    raw = batch(7, 8, [Sent("k")], Form(ZSTD), uncompressed_size=5)
    with pytest.raises(DamagedError, match="entry 7:8 of the topic is damaged: its payload"):
        value_of(entry_of(raw))
    with pytest.raises(DamagedError, match="entry 7:8"):
        list(messages_of([raw]))


def test_many_entries_are_read_in_parts_that_fit_into_memory():
    """Each entry is a kilobyte that becomes 12 MiB."""
    large = [batch(1, number, [Sent("k", bytes(12 << 20))], Form(ZSTD)) for number in range(5)]
    small = [single(1, 5 + number, Sent("k")) for number in range(3)]
    parts = [[raw.entry for raw in part.entries] for part in messages_of([*large, *small])]
    assert parts == [[0, 1], [2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_a_codec_that_is_not_known_seals_the_entry(codec):
    sealed = [single(1, 0, Sent("k"), compression=77), batch(1, 1, [Sent("k"), Sent("j")], compression=77)]
    (part,) = messages_of([RawEntry(*raw) for raw in sealed] + [single(1, 2, Sent("i"), Form(codec))])
    assert part.kind.tolist() == [1, 2, 0]
    assert part.key.to_pylist() == [b"k", None, b"i"]
