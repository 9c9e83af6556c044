"""Records as text: every record goes out and comes back, and every malformed line has an error of its own."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar.arrivals.arrived_columns import GIVEN_SCHEMA, given_batches
from lithify.columnar.segment.convert import to_records, to_table
from lithify.columnar.segment.schema import SEGMENT_SCHEMA
from lithify.columnar.text.encodings import Encoding, Encodings
from lithify.columnar.text.lines import LineError, format_json, parse_json
from lithify.columnar.text.pairs import parse_tsv
from lithify.errors import LithifyError
from lithify.model.record import TIMESTAMP_TYPES, Record


def stored(*records: Record) -> pa.Table:
    """Records as a log gives them back."""
    table = to_table(records)
    sizes = pa.array([None if r.value is None else len(r.value) for r in records], pa.int32())
    return table.append_column("value_size", sizes).select(SEGMENT_SCHEMA.names).cast(SEGMENT_SCHEMA)


def printed(*records: Record, encoding: Encoding = "utf-8") -> list[bytes]:
    return b"".join(format_json(stored(*records), Encodings.of(encoding), "orders")).splitlines()


def taken(table: pa.Table) -> list[Record]:
    """Parsed records, as `append` sees them."""
    given_table = pa.Table.from_batches(given_batches(table), GIVEN_SCHEMA)
    types = given_table.column("timestamp_type").fill_null(0)
    return list(
        to_records(given_table.set_column(given_table.schema.names.index("timestamp_type"), "timestamp_type", types))
    )


def test_a_line_has_the_fields_of_the_contract_in_their_order() -> None:
    lines = printed(
        Record(b"k", b"v", 1_700_000_000_000, (("h", b"x"),), 0, 17),
        Record(None, None, 5, (("h", None), ("h", b"")), 2, 18),
        Record("ключ".encode(), b'"\n\\', 5, (), 2, 19),
    )
    assert lines == [
        b'{"partition":0,"offset":17,"timestamp":1700000000000,"key":"k","value":"v","headers":[["h","x"]]}',
        b'{"partition":2,"offset":18,"timestamp":5,"key":null,"value":null,"headers":[["h",null],["h",""]]}',
        '{"partition":2,"offset":19,"timestamp":5,"key":"ключ","value":"\\"\\n\\\\","headers":[]}'.encode(),
    ]


def test_base64_is_for_keys_values_and_header_values() -> None:
    line = printed(Record(b"\xff", b"\x00", 5, (("h", b"\xfe"),), 0, 1), encoding="base64")[0]
    found = json.loads(line)
    assert (found["key"], found["value"], found["headers"]) == ("/w==", "AA==", [["h", "/g=="]])


def test_a_time_that_the_log_gave_is_reported() -> None:
    line = printed(Record(b"k", b"v", 5, (), 0, 1, "LogAppendTime"))[0]
    assert json.loads(line)["timestamp_type"] == "LogAppendTime"


TEXT = st.text(max_size=8).map(str.encode)


def any_record(parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[Record]:
    maybe = st.one_of(st.none(), parts)
    return st.builds(
        Record,
        key=maybe,
        value=maybe,
        timestamp=st.integers(-1, 2**63 - 1),
        headers=st.lists(st.tuples(st.text(max_size=4), maybe), max_size=2).map(tuple),
        partition=st.integers(0, 2**31 - 1),
        offset=st.integers(0, 2**63 - 1),
        timestamp_type=st.sampled_from(TIMESTAMP_TYPES),
        envelope=st.none(),
    )


@given(st.lists(any_record(TEXT), max_size=6))
def test_text_comes_back_as_it_went_out(records: list[Record]) -> None:
    assert taken(parse_json(printed(*records), Encodings.of("utf-8"))) == records


@given(st.lists(any_record(st.binary(max_size=8)), max_size=6))
def test_any_bytes_come_back_as_they_went_out(records: list[Record]) -> None:
    lines = printed(*records, encoding="base64")
    assert taken(parse_json(lines, Encodings.of("base64"))) == records
    assert [json.loads(line)["offset"] for line in lines] == [r.offset for r in records]


NOT_TEXT = {
    "key": Record(b"\xff", b"v", 1, (), 3, 9),
    "value": Record(b"k", b"\xc3", 1, (), 3, 9),
    "header": Record(b"k", b"v", 1, (("h", b"\xff"),), 3, 9),
}


@pytest.mark.parametrize("bad", NOT_TEXT.values(), ids=NOT_TEXT.keys())
def test_what_is_not_text_stops_the_output_behind_the_records_before_it(bad: Record) -> None:
    good = [Record(b"k", b"v", 1, (("h", b"x"),), 3, offset) for offset in range(5)]
    lines = format_json(stored(*good, bad, *good), Encodings.of("utf-8"), "orders")
    assert next(lines).count(b"\n") == 5
    with pytest.raises(LithifyError) as stopped:
        next(lines)
    assert str(stopped.value) == "orders-3: the record at offset 9 is not UTF-8 text (use --encoding base64)"
    assert stopped.value.exit_code == 1


def test_only_key_and_value_are_needed() -> None:
    assert taken(parse_json([b'{"key":"k","value":null}'], Encodings.of("utf-8")))[0] == Record(b"k", None)


BROKEN = {
    "half an object": (b'{"key":', "it is not JSON: Expecting value at column 8"),
    "two objects": (b'{"key":"k","value":"v"} {}', "it is not JSON: Extra data at column 25"),
    "a list": (b'["k","v"]', "it is not a JSON object"),
    "deep": (b'{"key":' + b"[" * 100_000, "it cannot be read as JSON"),
    "a huge number": (b'{"key":"k","value":"v","offset":' + b"9" * 5000 + b"}", "it cannot be read as JSON"),
    "not UTF-8": (b'{"key":"\xff","value":"v"}', "it is not UTF-8 text; --encoding base64 accepts any bytes"),
    "half a character": (b'{"key":"\\ud800","value":"v"}', "its key has half a character (a lone surrogate)"),
    "no key": (b'{"value":"v"}', 'it has no field "key"'),
    "no value": (b'{"key":"k"}', 'it has no field "value"; "value":null deletes a key'),
    "unknown field": (b'{"key":"k","value":"v","colour":1}', "unknown field 'colour'; the fields are headers, key"),
    "a number as key": (b'{"key":1,"value":"v"}', "its key is not a string or null: 1"),
    "an object as value": (b'{"key":"k","value":{"a":1}}', 'its value is not a string or null: {"a": 1}'),
    "text as offset": (b'{"key":"k","value":"v","offset":"1"}', 'its offset is not a whole number of 64 bits: "1"'),
    "true as partition": (b'{"key":"k","value":"v","partition":true}', "its partition is not a whole number"),
    "a fraction": (b'{"key":"k","value":"v","timestamp":1.0}', "its timestamp is not a whole number of 64 bits: 1.0"),
    "65 bits": (b'{"key":"k","value":"v","offset":9223372036854775808}', "its offset is not a whole number of 64 bits"),
    "33 bits": (b'{"key":"k","value":"v","partition":2147483648}', "its partition is not a whole number of 32 bits"),
    "timestamp type": (
        b'{"key":"k","value":"v","timestamp_type":"now"}',
        "its timestamp_type is not one of CreateTime",
    ),
    "header object": (b'{"key":"k","value":"v","headers":{"a":"b"}}', "its headers are not a list of"),
    "no headers": (b'{"key":"k","value":"v","headers":false}', "its headers are not a list of"),
    "header text": (b'{"key":"k","value":"v","headers":["ab"]}', "its headers are not a list of"),
    "header triple": (b'{"key":"k","value":"v","headers":[["a","b","c"]]}', "its headers are not a list of"),
    "header number": (b'{"key":"k","value":"v","headers":[["a",1]]}', 'its header "a" is not a string or null: 1'),
    "header without name": (b'{"key":"k","value":"v","headers":[[null,"b"]]}', "its headers are not a list of"),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_line_is_named_with_what_is_wrong(case: tuple[bytes, str]) -> None:
    line, reason = case
    good = b'{"key":"k","value":"v","headers":[["h","x"]]}'
    with pytest.raises(LineError) as broken:
        parse_json([good, good, line, good, line], Encodings.of("utf-8"))
    assert broken.value.index == 2
    assert broken.value.reason.startswith(reason)


@pytest.mark.parametrize("field", ["key", "value", "headers"])
def test_what_is_not_base64_is_named(field: str) -> None:
    record: dict[str, object] = {"key": "aw==", "value": None}
    record[field] = [["h", "no!"]] if field == "headers" else "no!"
    with pytest.raises(LineError, match="is not base64"):
        parse_json([b'{"key":"aw==","value":""}', json.dumps(record).encode()], Encodings.of("base64"))


def test_lines_that_only_make_sense_together_are_refused_apart() -> None:
    lines = [b'{"key":"a","value":"b"},{"key":"c"', b'"value":"d"}']
    with pytest.raises(LineError) as broken:
        parse_json(lines, Encodings.of("utf-8"))
    assert broken.value.index == 0


def test_tab_separated_lines() -> None:
    table = parse_tsv([b"k\tv", b"k\ta\tb", b"k\t", b"k\tNULL", b"\tv"], Encodings.of("utf-8"), b"NULL")
    pairs = list(zip(*table.to_pydict().values(), strict=True))
    assert pairs == [(b"k", b"v"), (b"k", b"a\tb"), (b"k", b""), (b"k", None), (b"", b"v")]


@pytest.mark.parametrize("null_marker", [None, b"NULL", b""])
def test_nothing_but_the_marker_deletes_a_key(null_marker: bytes | None) -> None:
    lines = [b"k\tNULL", b"k\t", b"k\tnull", b"k\tNULL\t", b"NULL\tv"]
    table = parse_tsv(lines, Encodings.of("utf-8"), null_marker)
    assert table["key"].to_pylist() == [b"k", b"k", b"k", b"k", b"NULL"]
    values = [b"NULL", b"", b"null", b"NULL\t", b"v"]
    assert table["value"].to_pylist() == [None if v == null_marker else v for v in values]


def test_a_marker_is_looked_for_before_base64_is_read() -> None:
    assert parse_tsv([b"aw==\t?", b"aw==\tdg=="], Encodings.of("base64"), b"?")["value"].to_pylist() == [None, b"v"]


@pytest.mark.parametrize("line", [b"k", b"NULL", b"k v", b"k\r"])
def test_a_line_without_a_tab_is_refused(line: bytes) -> None:
    """A file of something else deleted whatever it had on its lines."""
    with pytest.raises(LineError, match="no tab between key and value; to delete a key") as broken:
        parse_tsv([b"k\tv", line], Encodings.of("utf-8"), b"NULL")
    assert broken.value.index == 1


def test_tab_separated_base64() -> None:
    line = base64.b64encode(b"\xff\t") + b"\t" + base64.b64encode(b"\n")
    assert parse_tsv([line], Encodings.of("base64")).to_pylist() == [{"key": b"\xff\t", "value": b"\n"}]
    with pytest.raises(LineError, match="not base64"):
        parse_tsv([b"aw==\taw==", b"?\taw=="], Encodings.of("base64"))


@pytest.mark.parametrize("line", [b"\xff\tv", b"k\t\xff"])
def test_tab_separated_lines_are_text(line: bytes) -> None:
    with pytest.raises(LineError, match="it is not UTF-8 text") as broken:
        parse_tsv([b"k\tv", line], Encodings.of("utf-8"))
    assert broken.value.index == 1


@pytest.mark.parametrize("line", [b"  ", b"[" * 100_000, b"9" * 10_000, b"\xff"])
def test_the_error_of_a_line_does_not_hold_the_line(line):
    """It may have megabytes, in all of which an error that is made of this one would seek secrets."""
    with pytest.raises(LineError) as broken:
        parse_json([line], Encodings.of("utf-8", None, None))
    assert broken.value.__context__ is None
