"""What copying records takes that have large values or keys: no more than is told of a worker (C38)."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from lithify.model.record import Record
from lithify.rules.compaction.key_pass_shape import COPYING_BYTES
from lithify.spark.session.launch import PURGE_DELAY_MS
from support.processes.peak_memory import PEAK_BYTES
from support.topics.stored_topics import write_segments

pytestmark = pytest.mark.long

PROGRAM = f"""
import pickle, sys
import pyspark.sql
from lithify.columnar.files.access import FileAccess
from lithify.columnar.rewrite import Source, rewrite
from lithify.columnar.segment import checked_file
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.schema import SEGMENT_SCHEMA
from lithify.columnar.segment.writer import SegmentSpec
import lithify.spark.rewrite_job
{PEAK_BYTES}
segments = pickle.load(sys.stdin.buffer)
if sys.argv[2] == "remote":
    checked_file.local_path = lambda path: None
if sys.argv[3] == "few":
    sources = [Source(s, s.records // 2, DeadPositions.of(range(0, s.records, 2))) for s in segments]
else:
    sources = [Source(s, s.records - 1, DeadPositions.of([0])) for s in segments]
rewrite(FileAccess(), SegmentSpec(sys.argv[1], "run", 0, 2**27, "zstd", SEGMENT_SCHEMA, False), sources, attempt="1")
print(peak_bytes())
"""


@pytest.mark.parametrize(("key_bytes", "value_bytes"), [(10, 2_000), (10, 60_000), (10, 10_000_000), (1_000_000, 10)])
def test_large_values_and_keys_are_copied_in_the_memory_that_is_told(
    tmp_path: Path, key_bytes: int, value_bytes: int
) -> None:
    random, count = Random(1), 300_000_000 // (key_bytes + value_bytes)
    records = [
        Record(random.randbytes(key_bytes), random.randbytes(value_bytes), 0, (), 0, offset) for offset in range(count)
    ]
    assert peak_bytes_of_a_copy(tmp_path, records) <= COPYING_BYTES


@pytest.mark.parametrize("place", ["local", "remote"])
def test_survivors_that_have_all_the_bytes_are_copied_in_the_memory_that_is_told(tmp_path: Path, place: str) -> None:
    """Half of the records are deletes that go: two threads read, and no row group becomes smaller."""
    random = Random(1)
    records = [Record(b"%d" % n, random.randbytes(60_000) if n % 2 else None, 0, (), 0, n) for n in range(10_000)]
    assert peak_bytes_of_a_copy(tmp_path, records, place, "few") <= COPYING_BYTES


def peak_bytes_of_a_copy(folder: Path, records: list[Record], place: str = "local", survivors: str = "most") -> int:
    segments = write_segments(folder / "before", "run", records)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), place, survivors],
        input=pickle.dumps(segments),
        env={**os.environ, "MIMALLOC_PURGE_DELAY": PURGE_DELAY_MS},  # as workers have it
        capture_output=True,
        check=True,
    )
    return int(ran.stdout)
