"""Batches that are received together: each as if it were received alone after those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.arrivals import receiving
from lithify.columnar.arrivals.incoming import receive
from lithify.columnar.arrivals.receiving import receive_each
from lithify.columnar.segment.convert import envelope_columns, to_table
from lithify.errors import DefectError, InvalidInputError, InvalidRecordError
from lithify.model.message import Envelope, MessageId
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.staged import Destination
from lithify.store.iceberg.batches import ArrowArrivals
from support.generated.logs import a_record

NOW = 10_000
PARTITIONS = 3

Outcome = dict[int, pa.Table] | tuple[str, object, str]


def a_topic(**config: object) -> Destination:
    named = {name.replace("_", "."): value for name, value in config.items()}
    return Destination(TopicName("default", "orders"), "t", "file:///nowhere", settings_of(named), (4, 0, 3))


def told(error: InvalidInputError | InvalidRecordError) -> Outcome:
    return type(error).__name__, getattr(error, "index", None), str(error)


def alone(batches: Sequence[object], topic: Destination) -> list[Outcome]:
    """The outcome of each batch when it is received by itself. Keyless records move the round robin on."""
    outcomes: list[Outcome] = []
    for batch in batches:
        try:
            tables = receive(batch, topic, now_ms=NOW, keep_offsets=False)  # type: ignore[arg-type]
        except (InvalidInputError, InvalidRecordError) as error:
            outcomes.append(told(error))
        else:
            placed = unplaced_keyless(batch)
            topic = replace(topic, log_ends=(topic.log_ends[0] + placed, *topic.log_ends[1:]))
            outcomes.append(tables)
    return outcomes


def unplaced_keyless(batch: object) -> int:
    if isinstance(batch, list):
        return sum(record.key is None and record.partition is None for record in batch)
    assert isinstance(batch, pa.Table | pa.RecordBatch)
    names = batch.schema.names
    partitions = batch.column("partition").to_pylist() if "partition" in names else [None] * batch.num_rows
    return list(zip(batch.column("key").to_pylist(), partitions, strict=True)).count((None, None))


def together(batches: Sequence[object], topic: Destination) -> list[Outcome]:
    return [
        told(one)
        if isinstance(one, InvalidInputError | InvalidRecordError)
        else {p: share.table.slice(share.start, share.records) for p, share in one.items()}
        for one in receive_each(batches, topic, now_ms=NOW)  # type: ignore[arg-type]
    ]


RECORDS = a_record(
    key=st.one_of(st.none(), st.binary(max_size=9)),
    value=st.one_of(st.none(), st.binary(max_size=6)),
    timestamp=st.one_of(st.none(), st.integers(0, NOW)),
    headers=st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2).map(
        tuple
    ),
    partition=st.one_of(st.none(), st.integers(0, PARTITIONS - 1)),
)
REFUSED = st.sampled_from(
    [
        Record(b"k", b"v", NOW + 101),
        Record(b"k", b"v", -1),
        Record(b"k", b"v" * 100),
        Record(b"k", b"v", partition=PARTITIONS),
        Record(b"k", b"v", partition=-1),
    ]
)
TYPES: dict[str, tuple[pa.DataType, ...]] = {
    "key": (pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())),
    "value": (pa.large_binary(), pa.binary_view()),
    "timestamp": (pa.timestamp("ms"), pa.uint64(), pa.timestamp("us")),
    "partition": (pa.int8(), pa.int64()),
}


@st.composite
def a_batch(draw: st.DrawFn) -> object:
    """Records, or a table of some of their columns in types of many kinds; sometimes one that is refused."""
    records = draw(st.lists(RECORDS, max_size=8))
    for refused in draw(st.lists(REFUSED, max_size=1)) if draw(st.integers(0, 4)) == 0 else []:
        records.insert(draw(st.integers(0, len(records))), refused)
    if draw(st.booleans()):
        return records
    table = to_table(records).drop_columns(["offset", "timestamp_type"])
    for name, kinds in TYPES.items():
        kind = draw(st.sampled_from([None, *kinds]))
        if kind is not None and not (name in ("timestamp", "partition") and any(r in NEGATIVE for r in records)):
            at = table.schema.get_field_index(name)
            column = table.column(at)
            column = column.combine_chunks().dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
            table = table.set_column(at, name, column)
    left = [name for name in table.column_names if name in ("key", "value") or draw(st.booleans())]
    table = table.select(draw(st.permutations(left)))
    match draw(st.integers(0, 9)):
        case 0:
            return table.append_column("other", pa.nulls(table.num_rows))
        case 1:
            return table.set_column(0, table.column_names[0], pa.array([1.5] * table.num_rows, pa.float64()))
        case 2 | 3:
            size = draw(st.integers(1, 3))
            return pa.Table.from_batches(table.to_batches(max_chunksize=size), schema=table.schema)
        case 4:
            return table.combine_chunks().to_batches()[0] if table.num_rows else table
    return table


NEGATIVE = [Record(b"k", b"v", -1), Record(b"k", b"v", partition=-1)]
CONFIGS = st.fixed_dictionaries(
    {
        "null_key": st.sampled_from(["reject", "drop", "retain"]),
        "message_timestamp_type": st.sampled_from(["CreateTime", "LogAppendTime"]),
        "message_timestamp_after_max_ms": st.just(100),
        "max_message_bytes": st.just(60),
    }
)


@settings(deadline=None, max_examples=100)
@given(st.lists(a_batch(), min_size=1, max_size=6), CONFIGS)
def test_any_batches_are_received_together_as_one_by_one(batches: list[object], config: dict[str, object]) -> None:
    topic = a_topic(**config)
    assert together(batches, topic) == alone(batches, topic)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=4), min_size=1, max_size=4))
def test_message_ids_ascend_in_each_batch(ids: list[list[tuple[int, int]]]) -> None:
    topic = a_topic(message_ids="pulsar", null_key="drop")
    batches = []
    for of_batch in ids:
        envelopes = [Envelope(MessageId(1, entry, -1)) for _, entry in of_batch]
        records = [Record(b"k", b"v", 0, (), p, envelope=e) for (p, _), e in zip(of_batch, envelopes, strict=True)]
        table = to_table(records)
        for name, column in envelope_columns(records).items():
            table = table.append_column(name, column)
        batches.append(table)
    assert together(batches, topic) == alone(batches, topic)


def plain(count: int, value: bytes = b"v") -> pa.Table:
    keys = [f"k{n}".encode() for n in range(count)]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array([value] * count, pa.binary())})


def test_what_is_received_together_is_one_table_for_each_log() -> None:
    received = receive_each([plain(40), [Record(b"k", b"v", partition=0)], plain(30)], a_topic(), now_ms=NOW)
    shares = [one for one in received if not isinstance(one, Exception)]
    assert len(shares) == 3
    for partition in range(PARTITIONS):
        here = [share[partition] for share in shares if partition in share]
        assert len({id(share.table) for share in here}) == 1
        joined = ArrowArrivals.joined([ArrowArrivals(one.table, one.start, one.records) for one in here])
        assert joined.rows.equals(here[0].table)


def test_arrivals_of_several_tables_are_joined_as_well() -> None:
    a, b = plain(4), plain(3, b"w")
    some = [ArrowArrivals(a, 1, 2), ArrowArrivals(a, 3, 1), ArrowArrivals(b, 0, 2)]
    assert ArrowArrivals.joined(some).rows.equals(pa.concat_tables([a.slice(1, 3), b.slice(0, 2)]))
    assert ArrowArrivals.joined([some[1], some[0]]).rows.equals(pa.concat_tables([a.slice(3, 1), a.slice(1, 2)]))


def test_an_unexpected_error_is_of_its_own_batch_alone() -> None:
    """Here of a time zone that is no text."""
    table = plain(1).append_column("timestamp", pa.array([1], pa.timestamp("ms", "zone-name")))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    broken = pa.ipc.open_stream(sink.getvalue().to_pybytes().replace(b"zone-name", b"\xff" * 9)).read_all()
    first, second, third = receive_each([plain(2), broken, plain(2)], a_topic(), now_ms=NOW)
    assert isinstance(second, DefectError)
    assert not isinstance(first, Exception) and not isinstance(third, Exception)


@pytest.mark.parametrize(("name", "bound"), [("TOGETHER_RECORDS", 9), ("TOGETHER_BYTES", 100)])
def test_many_records_are_received_one_by_one(monkeypatch: pytest.MonkeyPatch, name: str, bound: int) -> None:
    monkeypatch.setattr(receiving, name, bound)
    batches = [plain(5), plain(5)]
    first, second = receive_each(batches, a_topic(), now_ms=NOW)
    assert not isinstance(first, Exception) and not isinstance(second, Exception)
    assert first.keys() == second.keys()
    assert all(first[partition].table is not second[partition].table for partition in first)
    assert together(batches, a_topic()) == alone(batches, a_topic())


def test_keyless_records_go_on_from_batch_to_batch() -> None:
    """Else all callers that append one at a time would write to the same log, again and again."""
    topic = a_topic(null_key="drop")
    for batches in ([[Record(None, b"v")]] * 4, [[Record(None, b"v")], [Record(b"k", b"v", -1)], [Record(None, b"v")]]):
        places = [list(one) for one in together(batches, topic) if isinstance(one, dict)]
        assert places == [[(7 + n) % PARTITIONS] for n in range(len(places))]
