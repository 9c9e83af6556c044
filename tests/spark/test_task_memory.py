"""The memory of Python workers: `--task-memory` and a fixed part bound it, however many keys there are (C38).

Each round has a Spark session and a worker of its own, as what a worker has taken once it may keep. The JVM is one:
nothing of it is measured, and it takes longer to start than all else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lithify
from lithify.rules.compaction.key_pass_shape import worker_bytes
from support.processes.programs import ENDS_WITHIN_S

MIB = 2**20
KEYS = 3_000_000
"""Of 16 bytes: they take 120 MB where they are compared, more than each task gets."""

PROGRAM = """
import json, sys
import lithify
from lithify.api.profiles import RoundProfile

for line in sys.stdin:
    folder, memory = json.loads(line)
    topic, profile = lithify.open(folder).topic("t"), RoundProfile()
    report = topic.compact(task_memory=memory, spark_conf={"spark.master": "local[1]"}, profile=profile)
    tasks = [(spent.kind, spent.peak_bytes, spent.worker) for _, spent in profile.tasks]
    print(json.dumps({"tasks": tasks, "kept": report.logs[0].records_out}), flush=True)
    from pyspark.sql import SparkSession
    SparkSession.getActiveSession().stop()
"""


@pytest.fixture(scope="module")
def program() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yield program
        assert program.stdin is not None
        program.stdin.close()
        assert program.wait(ENDS_WITHIN_S) == 0


def records(first: int, count: int) -> pa.Table:
    digits = np.char.zfill((np.arange(first, first + count) * 2_654_435_761 % KEYS).astype("S16"), 16)
    return pa.table({"key": pa.array(digits, pa.binary()), "value": pa.repeat(pa.scalar(b"v"), count)})


def measured(program: subprocess.Popen[str], folder: Path, memory: str) -> dict[str, Any]:
    assert program.stdin is not None and program.stdout is not None
    print(json.dumps([str(folder), memory]), file=program.stdin, flush=True)
    found: dict[str, Any] = json.loads(program.stdout.readline())
    return found


@pytest.mark.parametrize("memory", ["32MiB", "128MiB"])
def test_a_worker_takes_its_memory_and_a_fixed_part(program, tmp_path, memory):
    """First all keys are new, then half of them pass by the latest of the others, which rewrites the segments."""
    topic = lithify.open(str(tmp_path)).create_topic("t")
    asked = int(memory.removesuffix("MiB")) * MIB
    workers = set()
    for first, count in ((0, KEYS), (0, KEYS // 2)):
        topic.append(records(first, count))
        found = measured(program, tmp_path, memory)
        assert found["kept"] == KEYS
        peaks = {kind: peak for kind, peak, _ in found["tasks"]}
        assert 0 < max(peaks.values()) <= worker_bytes(asked), peaks
        (worker,) = {worker for _, _, worker in found["tasks"]}
        workers.add(worker)
    assert len(workers) == 2
