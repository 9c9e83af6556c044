"""Finding the records of few keys in large segments: by their index of keys, against reading their keys.

    python bench/key_index.py --data FOLDER [--keys 5000000] [--wanted 1 100 2000] [--times 5]

CPU seconds and bytes read for one segment, in turns, and what writing it costs with and without an index.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keyed_segments import Shape, keyed_segments, keys_of
from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.schema import KEY
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.model.segment import Segment
from shown import add_publish, shown

_CHANCE = np.random.default_rng(1)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def by_index(segment: Segment, keys: pa.Array) -> tuple[int, int]:
    """How many records have one of the keys, and the bytes read."""
    with SegmentReader(FileAccess(), segment) as reader:
        index = reader.key_index()
        assert index is not None
        records = reader.records_at(index.candidates(keys))
        there = records.read([KEY]).column(KEY).combine_chunks()
        index.check(there)
        return int(pc.sum(pc.is_in(there, keys)).as_py() or 0), index.bytes_read + records.bytes_read


def by_reading(segment: Segment, keys: pa.Array) -> tuple[int, int]:
    """The same, by the whole column of keys."""
    found = bytes_read = 0
    with SegmentReader(FileAccess(), segment) as reader:
        for group in range(reader.row_groups):
            bytes_read += reader.compressed_bytes(group, [KEY])
            found += pc.sum(pc.is_in(reader.read(group, [KEY]).column(KEY), keys)).as_py()
    return found, bytes_read


def main() -> None:
    parser = argparse.ArgumentParser(description="Times lookups of keys.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the segments; made if it is not there")
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--wanted", type=int, nargs="+", default=[1, 100, 2000])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--codec", default="zstd")
    add_publish(parser)
    asked = parser.parse_args()
    segments, written = {}, {}
    for indexed in (False, True):
        folder = (asked.data / f"indexed-{indexed}").resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        before = cpu_seconds()
        shape = Shape(
            asked.keys, asked.keys, 1, asked.value_bytes, 0.01, asked.codec, distinct=True, indexes_keys=indexed
        )
        (segments[indexed],) = keyed_segments(folder, shape)
        written[indexed] = {"cpu_s": round(cpu_seconds() - before, 2), "file_mb": segments[indexed].size_bytes / 1e6}
    with shown(asked) as show:
        for indexed, figures in written.items():
            show(way="writing", index=indexed, keys=asked.keys, **figures)
        for wanted in asked.wanted:
            for found in lookups(segments, keys_of(np.sort(_CHANCE.choice(asked.keys, wanted, replace=False))), asked):
                show(**found)


def lookups(segments: dict[bool, Segment], keys: pa.Array, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures of each way to find some keys, in turns."""
    ways: dict[str, Callable[[pa.Array], tuple[int, int]]] = {
        "by the index": lambda keys: by_index(segments[True], keys),
        "reading keys": lambda keys: by_reading(segments[True], keys),
        "reading keys, no index": lambda keys: by_reading(segments[False], keys),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    read = {}
    for _ in range(asked.times):
        for way, find in ways.items():
            before = cpu_seconds()
            found, read[way] = find(keys)
            seconds[way].append(cpu_seconds() - before)
            assert found == len(keys), (way, found)
    for way, taken in seconds.items():
        cpu_s = round(statistics.median(taken), 4)
        yield {"way": way, "keys": asked.keys, "wanted": len(keys), "cpu_s": cpu_s, "read_mb": read[way] / 1e6}


if __name__ == "__main__":
    main()
