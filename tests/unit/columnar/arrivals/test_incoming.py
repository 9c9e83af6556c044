"""Batches on their way in: the columns that come out, and the record that a refusal names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lithify.columnar.arrivals.incoming import receive, with_offsets, without_offset
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.schema import SEGMENT_SCHEMA
from lithify.errors import InvalidInputError, InvalidRecordError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.staged import Destination

NOW = 1_700_000_000_000


def a_topic(partitions: int = 1, **config: object) -> Destination:
    return Destination(
        name=TopicName("default", "orders"),
        identity="t",
        location="file:///nowhere",
        settings=settings_of({name.replace("_", "."): value for name, value in config.items()}),
        log_ends=(0,) * partitions,
    )


def arrived(table: pa.Table) -> list[Record]:
    return list(to_records(with_offsets(table, 0)))


def test_a_record_gets_what_it_lacks() -> None:
    parts = receive([Record(b"k", b"v")], a_topic(), now_ms=NOW, keep_offsets=False)
    assert parts[0].schema.equals(without_offset(SEGMENT_SCHEMA))
    assert arrived(parts[0]) == [Record(b"k", b"v", NOW, (), 0, 0)]


def test_offsets_are_laid_over_arrivals() -> None:
    parts = receive([Record(b"a", b"1"), Record(b"b", None)], a_topic(), now_ms=NOW, keep_offsets=False)
    table = with_offsets(parts[0], 41)
    assert table.schema.equals(SEGMENT_SCHEMA, check_metadata=True)
    assert table.column("offset").to_pylist() == [41, 42]
    assert table.column("value_size").to_pylist() == [1, None]


def test_keyless_records_go_round_from_where_the_topic_is() -> None:
    topic = a_topic(3, null_key="drop")
    topic = replace(topic, log_ends=(1, 2, 3))
    parts = receive([Record(None, b"%d" % n) for n in range(4)], topic, now_ms=NOW, keep_offsets=False)
    assert {p: t.column("value").to_pylist() for p, t in parts.items()} == {0: [b"0", b"3"], 1: [b"1"], 2: [b"2"]}


def test_nothing_comes_of_nothing() -> None:
    assert receive([], a_topic(), now_ms=NOW, keep_offsets=False) == {}
    empty = pa.table({"key": pa.array([], pa.string()), "value": pa.array([], pa.string())})
    assert receive(empty, a_topic(), now_ms=NOW, keep_offsets=True) == {}


REFUSED = {
    "no key": (Record(None, b"v"), {}, "it has no key, and null.key=reject"),
    "too large": (Record(b"k", b"v" * 11), {"max_message_bytes": 11}, "it has 12 bytes, above max.message.bytes=11"),
    "large headers": (
        Record(b"k", b"v", None, (("hé", b"x" * 9),)),
        {"max_message_bytes": 13},
        "it has 14 bytes, above max.message.bytes=13",
    ),
    "before 1970": (Record(b"k", b"v", -1), {}, "its timestamp -1 is before 1970"),
    "future": (
        Record(b"k", b"v", NOW + 3_600_001),
        {},
        f"its timestamp {NOW + 3_600_001} is further ahead than message.timestamp.after.max.ms allows",
    ),
    "partition": (Record(b"k", b"v", partition=2), {}, "there is no partition 2 (the topic has 2, from 0 on)"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refusals_name_the_first_record(case: tuple[Record, dict[str, object], str]) -> None:
    record, config, reason = case
    good = Record(b"k", b"v")
    with pytest.raises(InvalidRecordError) as refused:
        receive([good, good, record, good, record], a_topic(2, **config), now_ms=NOW, keep_offsets=False)
    assert (refused.value.index, refused.value.reason) == (2, reason)
    assert refused.value.message == f"the record at index 2 of the batch is refused: {reason}"


KEPT_REFUSED = {
    "no offset": (Record(b"k", b"v", partition=0), "it has no offset, which is needed to keep offsets"),
    "no partition": (Record(b"k", b"v", offset=9), "it has no partition, which is needed to keep offsets"),
    "negative": (Record(b"k", b"v", partition=0, offset=-4), "its offset -4 is below 0"),
    "equal": (
        Record(b"k", b"v", partition=0, offset=5),
        "its offset 5 does not ascend: 5 came before it in partition 0",
    ),
    "back": (
        Record(b"k", b"v", partition=0, offset=2),
        "its offset 2 does not ascend: 5 came before it in partition 0",
    ),
}


@pytest.mark.parametrize("case", KEPT_REFUSED.values(), ids=KEPT_REFUSED.keys())
def test_kept_offsets_must_be_there_and_ascend(case: tuple[Record, str]) -> None:
    record, reason = case
    batch = [Record(b"k", b"v", partition=0, offset=5), Record(b"k", b"v", partition=1, offset=1), record]
    with pytest.raises(InvalidRecordError) as refused:
        receive(batch, a_topic(2), now_ms=NOW, keep_offsets=True)
    assert (refused.value.index, refused.value.reason) == (2, reason)


def test_a_record_of_wrong_types_is_named() -> None:
    wrong = Record(b"k", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidRecordError, match="the record at index 1 of the batch is refused: it is not a record"):
        receive([Record(b"k", b"v"), wrong], a_topic(), now_ms=NOW, keep_offsets=False)


@pytest.mark.parametrize("field", ["timestamp", "partition", "offset"])
@pytest.mark.parametrize("value", [1.5, 1.0, float("nan"), "1", True])
def test_a_number_that_is_no_integer_is_refused_and_not_rounded(field: str, value: object) -> None:
    wrong = Record(b"k", b"v")._replace(**{field: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidRecordError, match=f"at index 1 .* its {field} {value!r} is not an integer"):
        receive([Record(b"k", b"v", 1, partition=0, offset=0), wrong], a_topic(), now_ms=NOW, keep_offsets=False)


KEY_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.large_binary(),
    pa.binary(3),
    pa.binary_view(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
]


@pytest.mark.parametrize("kind", KEY_TYPES, ids=str)
def test_keys_come_in_any_type_of_bytes(kind: pa.DataType) -> None:
    keys = pa.array(
        ["xxx", "abc", "déf"[:2], "xyz"] if kind != pa.binary(3) else [b"xxx", b"abc", b"d\xc3\xa9", b"xyz"]
    )
    table = pa.table({"key": keys.cast(kind), "value": pa.nulls(4)}).slice(1, 2)
    parts = receive(table, a_topic(), now_ms=NOW, keep_offsets=False)
    assert parts[0].column("key").to_pylist() == [b"abc", "dé".encode()]
    assert parts[0].column("value").to_pylist() == [None, None]


HEADER_STRUCT = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
HEADERS = [[{"key": "skipped", "value": b""}], [{"key": "a", "value": b"1"}, {"key": "a", "value": None}], [], None]
PAIRS = [[["skipped", ""]], [["a", "1"], ["a", None]], [], None]
HEADER_COLUMNS = {
    "structs": pa.array(HEADERS, HEADER_STRUCT),
    "large list of structs": pa.array(HEADERS, pa.large_list(HEADER_STRUCT.value_type)),
    "pairs": pa.array(PAIRS, pa.list_(pa.list_(pa.string()))),
    "fixed pairs": pa.array(PAIRS, pa.list_(pa.list_(pa.binary(), 2))),
    "map": pa.array(
        [[("skipped", b"")], [("a", b"1"), ("a", None)], [], None],
        pa.map_(pa.string(), pa.binary()),
    ),
}


@pytest.mark.parametrize("headers", HEADER_COLUMNS.values(), ids=HEADER_COLUMNS.keys())
def test_headers_come_as_structs_pairs_or_maps(headers: pa.Array) -> None:
    table = pa.table({"key": ["s", "k", "k", "k"], "value": ["v"] * 4, "headers": headers}).slice(1)
    parts = receive(table, a_topic(), now_ms=NOW, keep_offsets=False)
    assert [r.headers for r in arrived(parts[0])] == [(("a", b"1"), ("a", None)), (), ()]
    assert parts[0].column("headers").null_count == 2


def test_a_timestamp_column_is_read_as_milliseconds() -> None:
    moments = [datetime(2023, 11, 14, 22, 13, 20, 123_999, tzinfo=UTC), None]
    table = pa.table(
        {"key": ["a", "b"], "value": ["1", "2"], "timestamp": pa.array(moments, pa.timestamp("us", "UTC"))}
    )
    parts = receive(table, a_topic(), now_ms=NOW + 999, keep_offsets=False)
    assert parts[0].column("timestamp").to_pylist() == [1_700_000_000_123, NOW + 999]


def test_a_time_beyond_64_bits_of_milliseconds_is_refused_and_does_not_become_another() -> None:
    """As where nanoseconds are in a column of seconds: these would be 384 ms after 1970."""
    moments = pa.array([0, 2**64 // 1000 + 1], pa.timestamp("s"))
    table = pa.table({"key": ["a", "b"], "value": ["1", "2"], "timestamp": moments})
    with pytest.raises(InvalidInputError, match="the column 'timestamp'"):
        receive(table, a_topic(), now_ms=NOW, keep_offsets=False)


def test_what_a_topic_gave_can_be_appended_again() -> None:
    first = with_offsets(receive([Record(b"k", b"v")], a_topic(), now_ms=NOW, keep_offsets=False)[0], 7)
    again = receive(first, a_topic(), now_ms=NOW, keep_offsets=True)
    assert again[0].equals(first)


WRONG_COLUMNS = {
    "unknown": ({"key": ["a"], "value": ["b"], "colour": ["red"]}, "unknown column 'colour'"),
    "no value": ({"key": ["a"]}, "there is no column 'value'"),
    "no key": ({"value": ["a"]}, "there is no column 'key'"),
    "numbers as keys": ({"key": [1], "value": ["b"]}, "the column 'key' of type int64 is not accepted"),
    "fractions": ({"key": ["a"], "value": ["b"], "offset": [1.0]}, "the column 'offset' of type double"),
    "large partition": ({"key": ["a"], "value": ["b"], "partition": [2**40]}, "the column 'partition' of type int64"),
    "triples": ({"key": ["a"], "value": ["b"], "headers": [[["a", "b", "c"]]]}, "every header must be a"),
    "header text": ({"key": ["a"], "value": ["b"], "headers": ["h"]}, "it must be a list of"),
}


@pytest.mark.parametrize("case", WRONG_COLUMNS.values(), ids=WRONG_COLUMNS.keys())
def test_columns_that_hold_no_records_are_refused(case: tuple[dict[str, list[object]], str]) -> None:
    columns, message = case
    with pytest.raises(InvalidInputError, match=message):
        receive(pa.table(columns), a_topic(), now_ms=NOW, keep_offsets=False)


def test_a_column_that_is_there_twice_is_refused() -> None:
    table = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["key", "value", "key"])
    with pytest.raises(InvalidInputError, match="'key' is given twice"):
        receive(table, a_topic(), now_ms=NOW, keep_offsets=False)


def test_a_header_without_a_name_is_refused() -> None:
    headers = pa.array([[{"key": None, "value": b"1"}]], HEADER_STRUCT)
    table = pa.table({"key": ["a"], "value": ["b"], "headers": headers})
    with pytest.raises(InvalidRecordError, match="a header of it has no name"):
        receive(table, a_topic(), now_ms=NOW, keep_offsets=False)
