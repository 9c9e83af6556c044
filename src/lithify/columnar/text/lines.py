"""Formats and parses records as text: one JSON object a line.

    {"partition":0,"offset":17,"timestamp":1700000000000,"key":"k","value":"v","headers":[["h","x"]]}

A record with a message id of Pulsar's has `"message_id":"1042:17:0","publish_time":...,"event_time":...` after its
timestamp, and one that was passed through whole `"passed_through":true`.

Text is UTF-8, base64 or hex (`encodings`), so that any bytes pass. On
the way in only `key` and `value` are needed. A record whose timestamp the log gave has one field
more, `"timestamp_type":"LogAppendTime"`, so that a copy with `produce --keep-offsets` is whole.

Lines become Arrow columns a batch at a time; only a batch with an error is checked record by record,
to name the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from lithify.columnar.text.encodings import NOT_UTF8, Encoding, Encodings, to_bytes, to_text
from lithify.errors import LithifyError
from lithify.model.message import MessageId
from lithify.model.names import partition_of
from lithify.model.record import TIMESTAMP_TYPES
from lithify.reports.page.wording import inert_json

if TYPE_CHECKING:
    import pyarrow as pa

JSON_FIELDS = frozenset({"partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"})
_BITS = {"partition": 32, "offset": 64, "timestamp": 64}
"""Of whole numbers."""

_text = json.JSONEncoder(ensure_ascii=False).encode


class LineError(Exception):
    """A line that is not a record: its index in the batch, from 0, and what is wrong with it."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


def parse_json(lines: Sequence[bytes], encodings: Encodings) -> pa.Table:
    """JSON lines as a table of the columns that `append` takes. Raises `LineError`."""
    import pyarrow as pa

    records = [_json_object(index, line) for index, line in enumerate(lines)]
    try:
        return _table(records, encodings)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError):
        for index, record in enumerate(records):
            _check(index, record, encodings)
        raise


def check_json(lines: Sequence[bytes], encodings: Encodings) -> None:
    """Raises the `LineError` that `parse_json` raises. Needs no Arrow."""
    for index, record in enumerate([_json_object(index, line) for index, line in enumerate(lines)]):
        _check(index, record, encodings)


def _json_object(index: int, line: bytes) -> dict[str, Any]:
    record, reason = None, ""
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError:
        reason = NOT_UTF8
    except json.JSONDecodeError as error:
        reason = f"it is not JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
    except (RecursionError, ValueError) as error:  # nested too deeply, a number of thousands of digits
        reason = f"it cannot be read as JSON: {error}"
    if reason:  # raised here, as the exception before it has the whole line, in all of which secrets would be sought
        raise LineError(index, reason)
    if type(record) is not dict:
        raise LineError(index, "it is not a JSON object")
    if not record.keys() <= JSON_FIELDS:
        unknown = next(name for name in record if name not in JSON_FIELDS)
        raise LineError(index, f"unknown field {unknown!r}; the fields are {', '.join(sorted(JSON_FIELDS))}")
    return record


def _table(records: Sequence[dict[str, Any]], encodings: Encodings) -> pa.Table:
    """Converts all records at once; raises any of several exceptions if one is malformed."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, encoding in (("key", encodings.key), ("value", encodings.value)):
        texts = [record[name] for record in records]
        _require(texts, {str, type(None)})
        columns[name] = _bytes_column(texts, encoding)
    for name, bits in _BITS.items():
        numbers = [record.get(name) for record in records]
        _require(numbers, {int, type(None)})
        columns[name] = pa.array(numbers, pa.int32() if bits == 32 else pa.int64())
    types = [record.get("timestamp_type") for record in records]
    columns["timestamp_type"] = pa.array([None if t is None else TIMESTAMP_TYPES.index(t) for t in types], pa.int32())
    headers = [record.get("headers") for record in records]
    _require(headers, {list, type(None)})
    if any(headers):
        columns["headers"] = _headers_column(headers, encodings.headers)
    return pa.table(columns)


def _require(values: Sequence[object], allowed: set[type]) -> None:
    if not set(map(type, values)) <= allowed:
        raise TypeError


def _bytes_column(texts: Sequence[str | None], encoding: Encoding) -> pa.Array:
    import pyarrow as pa

    if encoding == "utf-8":
        return pa.array(texts, pa.string())
    return pa.array([None if text is None else to_bytes(text, encoding) for text in texts], pa.binary())


def _headers_column(headers: Sequence[Any], encoding: Encoding) -> pa.Array:
    import pyarrow as pa

    if any(_headers_fault(given, encoding) for given in headers):
        raise ValueError
    pairs = [
        [(str.encode(name), None if value is None else to_bytes(value, encoding)) for name, value in given]
        if given
        else None
        for given in headers
    ]
    return pa.array(pairs, pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])))


def _check(index: int, record: dict[str, Any], encodings: Encodings) -> None:
    if reason := _fault(record, encodings):
        raise LineError(index, reason) from None


def _fault(record: dict[str, Any], encodings: Encodings) -> str | None:
    """What is wrong with a record, as text for the user; None if nothing is."""
    for name, encoding in (("key", encodings.key), ("value", encodings.value)):
        if name not in record:
            return f'it has no field "{name}"' + ('; "value":null deletes a key' if name == "value" else "")
        if fault := _text_fault(record[name], encoding):
            return f"its {name} {fault}"
    for name, bits in _BITS.items():
        number = record.get(name)
        if number is not None and (type(number) is not int or number not in range(-(2 ** (bits - 1)), 2 ** (bits - 1))):
            return f"its {name} is not a whole number of {bits} bits: {json.dumps(number)}"
    if record.get("timestamp_type") not in (None, *TIMESTAMP_TYPES):
        return f"its timestamp_type is not one of {', '.join(TIMESTAMP_TYPES)}: {json.dumps(record['timestamp_type'])}"
    return _headers_fault(record.get("headers"), encodings.headers)


def _text_fault(text: object, encoding: Encoding) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        return f"is not a string or null: {json.dumps(text)[:60]}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "has half a character (a lone surrogate), which is not valid text"
    try:
        to_bytes(text, encoding)
    except ValueError as error:
        return str(error).removeprefix("it ")
    return None


def _headers_fault(headers: object, encoding: Encoding) -> str | None:
    if headers is None:
        return None
    shape = 'its headers are not a list of ["name","value"] pairs'
    if not isinstance(headers, list):
        return shape
    for pair in headers:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            return shape
        name_fault = _text_fault(pair[0], "utf-8")
        if fault := name_fault or _text_fault(pair[1], encoding):
            return f"its header {json.dumps(pair[0])[:60]} {fault}"
    return None


def format_json(table: pa.Table, encodings: Encodings, topic: str) -> Iterator[bytes]:
    """The records of a table as JSON lines, some thousands at a time.

    Raises `LithifyError` at a record that is not UTF-8, after those before it.
    """
    for batch in table.to_batches(max_chunksize=8192):
        sound = _text_records(batch, encodings)
        yield inert_json("".join(_lines(batch.slice(0, sound), encodings))).encode()
        if sound < batch.num_rows:
            place = batch.slice(sound, 1).select(["partition", "offset"]).to_pylist()[0]
            raise LithifyError(
                f"{partition_of(topic, place['partition'])}: the record at offset {place['offset']} is not UTF-8 text",
                hint="use --encoding base64",
            )


def _lines(batch: pa.RecordBatch, encodings: Encodings) -> Iterator[str]:
    def quoting(encoding: Encoding) -> Callable[[bytes | None], str]:
        text_of = to_text(encoding)
        return lambda data: "null" if data is None else _text(text_of(data))

    key_text, value_text, header_text = map(quoting, (encodings.key, encodings.value, encodings.headers))
    names = ("partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
    columns = [batch.column(name).to_pylist() for name in names]
    for partition, offset, timestamp, kind, key, value, given, ids in zip(*columns, _ids(batch), strict=True):
        by_log = ',"timestamp_type":"LogAppendTime"' if kind else ""
        headers = ",".join(f"[{_text(h['key'])},{header_text(h['value'])}]" for h in given or ())
        yield (
            f'{{"partition":{partition},"offset":{offset},"timestamp":{timestamp}{by_log}{ids},'
            f'"key":{key_text(key)},"value":{value_text(value)},"headers":[{headers}]}}\n'
        )


def _ids(batch: pa.RecordBatch) -> Iterator[str]:
    """What records have of Pulsar, as the fields of a line; empty texts in other topics."""
    names = ("ledger_id", "entry_id", "batch_index", "timestamp", "event_time", "passed_through")
    if "ledger_id" not in batch.schema.names:
        yield from repeat("", batch.num_rows)
        return
    for *ids, published, event, passed in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
        whole = ',"passed_through":true' if passed else ""
        event_time = "null" if event is None else event
        yield f',"message_id":"{MessageId(*ids)}","publish_time":{published},"event_time":{event_time}{whole}'


def _text_records(batch: pa.RecordBatch, encodings: Encodings) -> int:
    """How many records from the first one on are UTF-8 text wherever they are to be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        for name, encoding in (("key", encodings.key), ("value", encodings.value)):
            if encoding == "utf-8":
                batch.column(name).cast(pa.string())
        if encodings.headers == "utf-8":
            pc.struct_field(batch.column("headers").flatten(), "value").cast(pa.string())
    except pa.ArrowInvalid:
        return next(n for n in range(batch.num_rows) if not _is_text(batch.slice(n, 1).to_pylist()[0], encodings))
    return int(batch.num_rows)


def _is_text(record: dict[str, Any], encodings: Encodings) -> bool:
    headers = [(h["value"], encodings.headers) for h in record["headers"] or ()]
    try:
        for part, encoding in ((record["key"], encodings.key), (record["value"], encodings.value), *headers):
            to_text(encoding)(part or b"")
    except UnicodeDecodeError:
        return False
    return True
