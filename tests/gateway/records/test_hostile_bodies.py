"""Bodies that were made to hurt: damaged Arrow streams, small ones that would become large, too many at once."""

import asyncio
import random
import struct

import pyarrow as pa
import pytest
from starlette.requests import Request

from gateway.conftest import Served
from gateway.records.exchanges import ARROW, RECORDS, sent, stream_of
from lithify.errors import BusyError
from lithify.gateway.server.records import arrow_body
from lithify.gateway.server.records.arrow_body import RECORDS as MOST_RECORDS
from lithify.gateway.server.records.arrow_body import table_of_stream
from lithify.gateway.server.records.bodies import Bodies
from lithify.model.record import Record


def append(served, data):
    return served.ask("POST", RECORDS, data=data, headers={"Content-Type": ARROW})


def a_table(**columns):
    return pa.table({"key": pa.array([b"k"] * 3, pa.binary()), "value": pa.array([b"v"] * 3, pa.binary())} | columns)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_stream_is_refused_or_harmless(served: Served, seed):
    """Bytes anywhere are changed, or the end is missing: never a defect, never records beyond those it had."""
    topic = served.lake.create_topic("shop/orders", 3)
    chance = random.Random(seed)
    records = [Record(key=b"k%d" % n, value=b"v" * n, partition=0, headers=(("h", b"x"),)) for n in range(20)]
    whole = sent(records, ARROW)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        told = append(served, bytes(damaged[: chance.choice((None, chance.randrange(len(damaged))))]))
        assert told.status_code in (200, 400), told.text
        assert told.status_code == 400 or told.json()["records"] <= 20
    assert append(served, whole).status_code == 200
    assert topic.info().records > 0


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compression_is_refused_before_anything_is_expanded(served: Served, codec):
    served.lake.create_topic("shop/orders")
    bomb = pa.table({"key": pa.array([b"k"], pa.binary()), "value": pa.array([bytes(2**28)], pa.binary())})
    body = stream_of(bomb, compression=codec)
    assert len(body) < 2**22
    told = append(served, body)
    assert (told.status_code, told.json()["detail"]) == (400, "the Arrow stream is compressed")


def test_the_compression_of_old_versions_is_refused_as_well(served: Served):
    """Arrow 0.17 named the codec in metadata of the message only, and Arrow still reads that."""
    served.lake.create_topic("shop/orders")
    table = pa.table({"key": pa.array([b"k"], pa.binary()), "value": pa.array([bytes(2**28)], pa.binary())})
    options = pa.ipc.IpcWriteOptions(compression="zstd", metadata_version=pa.ipc.MetadataVersion.V4)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_batch(table.to_batches()[0], custom_metadata={"ARROW:experimental_compression": "zstd"})
    bomb = without_compression_field(sink.getvalue().to_pybytes())
    assert len(bomb) < 2**16 and pa.ipc.open_stream(bomb).read_all().nbytes > 2**28
    told = append(served, bomb)
    assert (told.status_code, told.json()["detail"]) == (400, "the Arrow stream is compressed")


def without_compression_field(body: bytes) -> bytes:
    """The same stream, whose one record batch does not name its codec where newer versions do."""
    changed = bytearray(body)
    whole = [bytes(one.metadata) for one in pa.ipc.MessageReader.open_stream(body) if one.type == "record batch"]
    start, metadata = body.index(whole[0]), memoryview(whole[0])
    batch = arrow_body._target(metadata, arrow_body._field(metadata, *struct.unpack_from("<I", metadata), 2))
    entry = batch - struct.unpack_from("<i", metadata, batch)[0] + 4 + 2 * 3
    changed[start + entry : start + entry + 2] = b"\0\0"
    return bytes(changed)


@pytest.mark.parametrize(
    "columns",
    [
        {"value": pa.array(["v"] * 3).dictionary_encode()},
        {"value": pa.array(["v"] * 3, pa.string_view())},
        {"value": pa.array([b"v"] * 3, pa.binary_view())},
        {"value": pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array(["v"]))},
        {"headers": pa.array([[]] * 3, pa.list_view(pa.int8()))},
        {"headers": pa.nulls(3, pa.list_(pa.null(), 2**20))},
        {"headers": pa.nulls(3, pa.list_(pa.struct([])))},
        {"value": pa.array([b"vv"] * 3, pa.binary(2))},
    ],
)
def test_types_whose_values_may_be_more_than_their_bytes_are_refused(columns):
    with pytest.raises(Exception, match="is not accepted in a stream"):
        table_of_stream(stream_of(a_table(**columns)))


@pytest.mark.parametrize("place", [b"column", b"inner-name", b"zone-name", b"inner-zone"])
def test_names_that_are_no_text_are_refused(served: Served, place):
    served.lake.create_topic("shop/orders")
    inner = pa.list_(pa.struct([("inner-name", pa.string()), ("value", pa.timestamp("ms", "inner-zone"))]))
    times = pa.array([1] * 3, pa.timestamp("ms", "zone-name"))
    body = stream_of(a_table(headers=pa.nulls(3, inner), column=pa.array([1] * 3), timestamp=times))
    told = append(served, body.replace(place, b"\xff" * len(place)))
    assert (told.status_code, told.json()["code"]) == (400, "InvalidInput")
    assert "not an Arrow IPC stream" in told.json()["detail"]


def test_records_without_any_bytes_are_counted():
    many = pa.RecordBatch.from_arrays([pa.nulls(MOST_RECORDS + 1)] * 2, ["key", "value"])
    body = stream_of(pa.Table.from_batches([many]))
    assert len(body) < 1000
    with pytest.raises(Exception, match="more than 1,000,000 records"):
        table_of_stream(body)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary(), pa.null()])
def test_plain_types_are_taken(served: Served, kind):
    served.lake.create_topic("shop/orders")
    values = [None] * 3 if kind == pa.null() else ["v", None, ""]
    told = append(served, stream_of(a_table(value=pa.array(values, kind))))
    assert told.json()["records"] == 3


def test_unknown_columns_are_named(served: Served):
    served.lake.create_topic("shop/orders")
    told = append(served, stream_of(a_table(other=pa.array([1, 2, 3]))))
    assert (told.status_code, "'other'" in told.json()["detail"]) == (400, True)
    assert append(served, stream_of(a_table().select(["key"]))).status_code == 400


def a_request(*parts: bytes) -> Request:
    left = list(parts)

    async def receive():
        await asyncio.sleep(0)
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_bodies_are_bounded_in_total():
    bodies = Bodies(most_bytes=10)

    async def both():
        async with bodies.body(a_request(b"1234", b"5678")) as first:
            with pytest.raises(BusyError, match="under way"):
                async with bodies.body(a_request(b"a", b"bc")):
                    raise AssertionError
            async with bodies.body(a_request(b"ab")) as second:
                return first, second

    assert asyncio.run(both()) == (b"12345678", b"ab")
    assert bodies._bytes == 0
