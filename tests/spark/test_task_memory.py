"""The memory of Python workers: `--task-memory` and a fixed part bound it, however many keys there are (C38).

Each round has a Spark session and a worker of its own, as what a worker has taken once it may keep.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import lithify
from lithify.rules.compaction.key_pass_shape import worker_bytes

MIB = 2**20
KEYS = 3_000_000
"""Of 16 bytes: they take 120 MB where they are compared, more than each task gets."""

PROGRAM = """
import json, sys
import lithify
from lithify.api.profiles import RoundProfile

topic, profile = lithify.open(sys.argv[1]).topic("t"), RoundProfile()
report = topic.compact(task_memory=sys.argv[2], spark_conf={"spark.master": "local[1]"}, profile=profile)
tasks = [(spent.kind, spent.peak_bytes, spent.worker) for _, spent in profile.tasks]
print(json.dumps({"tasks": tasks, "kept": report.logs[0].records_out}))
"""


def records(first: int, count: int) -> pa.Table:
    digits = np.char.zfill((np.arange(first, first + count) * 2_654_435_761 % KEYS).astype("S16"), 16)
    return pa.table({"key": pa.array(digits, pa.binary()), "value": pa.repeat(pa.scalar(b"v"), count)})


def measured(folder: object, memory: str) -> dict[str, object]:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), memory], capture_output=True, text=True, env=os.environ, check=True
    )
    return dict(json.loads(ran.stdout.splitlines()[-1]))


@pytest.mark.parametrize("memory", ["32MiB", "128MiB"])
def test_a_worker_takes_its_memory_and_a_fixed_part(tmp_path, memory):
    """First all keys are new, then half of them pass by the latest of the others, which rewrites the segments."""
    topic = lithify.open(str(tmp_path)).create_topic("t")
    asked = int(memory.removesuffix("MiB")) * MIB
    for first, count in ((0, KEYS), (0, KEYS // 2)):
        topic.append(records(first, count))
        found = measured(tmp_path, memory)
        assert found["kept"] == KEYS
        peaks = {kind: peak for kind, peak, _ in found["tasks"]}
        assert 0 < max(peaks.values()) <= worker_bytes(asked), peaks
        assert len({worker for _, _, worker in found["tasks"]}) == 1
