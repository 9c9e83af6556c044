"""A keyed log as segments on disk, made with the project's own writer, for the benchmarks of rounds.

Values are half random and half text, so that they compress to about half; some records are tombstones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lithify
from lithify.api.topic import Topic
from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.schema import HEADERS_TYPE, SEGMENT_SCHEMA
from lithify.columnar.segment.writer import ROW_GROUP_RECORDS, SegmentSpec, SegmentWriter
from lithify.model.log_arithmetic import measured
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit

_SPREAD = 2_654_435_761
"""A prime: multiples of it, modulo a smaller number, come in no order, and each once."""

_MIX = np.uint64(0xBF58476D1CE4E5B9)
"""Odd, so that products with it, modulo 2**64, are of one number each."""

_FIXED = np.uint64(0x9E3779B97F4A7C15)

_ZIPF = 1.1
"""Exponent: the most frequent key has a tenth of the records."""

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)

_TEXT = b"the quick brown fox jumps over the lazy dog " * 1000


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the log is."""

    records: int
    keys: int
    segments: int
    value_bytes: int
    tombstones: float
    codec: str = "zstd"
    seed: int = 1
    distinct: bool = False
    """Whether each key comes once, as many records there are."""
    indexes_keys: bool = False
    chosen: str = "uniform"
    """How the keys of records are chosen: `uniform`, `zipf`, `time`, most are keys that came shortly before, or `hot`,
    every second record is of one key and each other one of a key of its own."""
    written: str = "digits"
    """What a key is: 16 bytes of `digits`, a `uuid` as text of 36 bytes, or a `long` one of 100 bytes."""
    first_offset: int = 0

    @property
    def stored_records(self) -> int:
        """As many in each segment, so that some of `records` may be missing."""
        return self.records // self.segments * self.segments

    @property
    def name(self) -> str:
        """For a folder: no other shape has it."""
        return hashlib.blake2b(repr(self).encode(), digest_size=8).hexdigest()


def keyed_segments(folder: Path, shape: Shape) -> tuple[Segment, ...]:
    """The segments of a log of this shape under `folder`, which is filled if it is not yet."""
    note = folder / "segments.json"
    wanted = asdict(shape)
    if note.exists() and (known := json.loads(note.read_text()))["shape"] == wanted:
        return tuple(_segment(facts) for facts in known["segments"])
    chance = np.random.default_rng(shape.seed)
    per_segment = shape.records // shape.segments
    segments: list[Segment] = []
    for number in range(shape.segments):
        spec = SegmentSpec(str(folder), f"made{number}", 0, 2**40, shape.codec, indexes_keys=shape.indexes_keys)
        writer = SegmentWriter(FileAccess(), spec, attempt="0")
        for batch in _batches(chance, shape, shape.first_offset + number * per_segment, per_segment):
            writer.write(batch)
        segments += writer.close()
    note.write_text(json.dumps({"shape": wanted, "segments": [_facts(s) for s in segments]}))
    return tuple(segments)


def topic_of(segments: tuple[Segment, ...], folder: Path, clean_end: int = 0, **config: str) -> Topic:
    """A new topic `orders` of a warehouse in `folder` that names these files, compacted below `clean_end`."""
    topic = lithify.open(str(folder)).create_topic("orders", config=config)
    state, end = topic.state(), segments[-1].end_offset
    log = measured(replace(state.logs[0], log_end_offset=end, first_dirty_offset=clean_end), segments)
    topic.warehouse.store.commit(state, TopicEdit("made", topic.warehouse.clock.now_ms(), {0: log}, add=segments))
    return topic


def _batches(chance: np.random.Generator, shape: Shape, first: int, count: int) -> Iterator[pa.Table]:
    half = shape.value_bytes // 2
    for start in range(first, first + count, ROW_GROUP_RECORDS):
        records = min(ROW_GROUP_RECORDS, first + count - start)
        value = np.empty((records, shape.value_bytes), np.uint8)
        value[:, :half] = chance.integers(0, 256, (records, half), dtype=np.uint8)
        value[:, half:] = np.frombuffer(_TEXT[: shape.value_bytes - half], np.uint8)
        offsets = np.arange(start, start + records)
        keys = _KEYS[shape.written](_numbers(chance, shape, offsets))
        values = pc.if_else(pa.array(chance.random(records) < shape.tombstones), None, binary(value))
        yield pa.Table.from_arrays(
            [
                pa.repeat(pa.scalar(0, pa.int32()), records),
                pa.array(offsets),
                pa.array(1_700_000_000_000 + offsets),
                pa.repeat(pa.scalar(0, pa.int32()), records),
                binary(keys),
                values,
                pc.binary_length(values).cast(pa.int32()),
                pa.nulls(records, HEADERS_TYPE),
            ],
            schema=SEGMENT_SCHEMA,
        )


def keys_of(numbers: np.ndarray) -> pa.Array:
    """The keys of the records with these numbers."""
    return binary(_digits(numbers))


def _numbers(chance: np.random.Generator, shape: Shape, offsets: np.ndarray) -> np.ndarray:
    """The number of the key of each record."""
    if shape.distinct:
        return offsets * _SPREAD % shape.keys
    if shape.chosen == "zipf":
        return chance.zipf(_ZIPF, len(offsets)) % shape.keys
    if shape.chosen == "hot":
        return np.where(offsets % 2, 1 + offsets // 2 * _SPREAD % shape.keys, 0)
    if shape.chosen == "time":
        newest = (offsets - shape.first_offset) * shape.keys // shape.records
        return np.maximum(0, newest - chance.integers(0, shape.keys // 100 + 1, len(offsets)))
    return chance.integers(0, shape.keys, len(offsets))


def _digits(numbers: np.ndarray) -> np.ndarray:
    """`key-000000001234` for each number, as rows of 16 bytes."""
    digits = np.empty((len(numbers), 16), np.uint8)
    digits[:, :4] = np.frombuffer(b"key-", np.uint8)
    for place in range(15, 3, -1):
        digits[:, place] = ord("0") + numbers % 10
        numbers = numbers // 10
    return digits


def _uuids(numbers: np.ndarray) -> np.ndarray:
    """As text, rows of 36 bytes: each number has its own."""
    plain = numbers.astype(np.uint64)
    words = np.stack([plain * _MIX, plain ^ _FIXED], axis=1)
    nibbles = np.stack([words.view(np.uint8) >> 4, words.view(np.uint8) & 15], axis=2).reshape(len(numbers), 32)
    text = np.full((len(numbers), 36), ord("-"), np.uint8)
    text[:, [place for place in range(36) if place not in (8, 13, 18, 23)]] = _HEX[nibbles]
    return text


def _long(numbers: np.ndarray) -> np.ndarray:
    """Rows of 100 bytes, which differ in the last ones."""
    keys = np.empty((len(numbers), 100), np.uint8)
    keys[:, :84] = np.frombuffer(_TEXT[:84], np.uint8)
    keys[:, 84:] = _digits(numbers)
    return keys


_KEYS = {"digits": _digits, "uuid": _uuids, "long": _long}


def binary(rows: np.ndarray) -> pa.Array:
    """Each row of bytes, (records, width), as one value."""
    count, width = rows.shape
    ends = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(rows)])


def _facts(segment: Segment) -> dict[str, object]:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(segment).items()}


def _segment(facts: dict[str, object]) -> Segment:
    bounds = {name: bytes.fromhex(str(facts[name])) for name in ("min_key", "max_key")}
    return Segment(**{**facts, **bounds})  # type: ignore[arg-type]
