"""What a plan, `status` and a reader at the end cost by the number of segments, which is what bounds the driver.

    python bench/many_segments.py [--segments 10000 50000 1000000] [--partitions 10] [--masked]

Nothing of these opens a segment, so there are none: commits name files of 120 MB that were never written, 4,096 at a
time, as the manifests of a topic that is appended to are merged to that many. Keys are spread over all segments.
Each figure is of a process of its own that has imported Lithify: seconds of the processor for the first and the second
call, and the largest peak of their memory. The target for 50,000 segments is half a second.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import lithify
from lithify.api.wiring import open_warehouse
from lithify.model.names import TopicName
from lithify.model.segment import Mask, Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import NewTopic, TopicState
from lithify.service.write.append import appended
from shown import add_publish, shown

PER_COMMIT = 4_096
PEAK = "peak_mib"
RECORDS, BYTES, KEY_BYTES = 600_000, 120_000_000, 12_000_000
"""Of each segment."""

CALLS: dict[str, Callable[[lithify.Topic], object]] = {
    "plan": lambda topic: topic.plan(),
    "status": lambda topic: topic.status(),
    "latest": lambda topic: topic.reader(start="latest"),
    "one_log": lambda topic: topic.reader(0),
}


def fill(folder: str, segments: int, partitions: int, *, masked: bool) -> None:
    """A topic with so many segments, none of which has a file."""
    warehouse = open_warehouse(folder)
    state = warehouse.store.create_topic(NewTopic(TopicName("default", "wide"), "wide", TopicSettings(), partitions, 0))
    chance = np.random.default_rng(1)
    for done in range(0, segments, PER_COMMIT):
        run_id, logs, added = warehouse.clock.new_id(), dict(enumerate(state.logs)), list[Segment]()
        for number in range(done, min(done + PER_COMMIT, segments)):
            log = logs[number % partitions]
            segment = a_segment(state, log.partition, log.log_end_offset, f"{run_id}-{number}", chance)
            if masked:
                segment = with_mask(segment)
            added.append(segment)
            logs[log.partition] = appended(log, (segment,), segment.max_timestamp_ms)
        logs = {p: log.with_run(run_id) for p, log in logs.items()}
        state = warehouse.store.commit(state, TopicEdit(run_id, warehouse.clock.now_ms(), logs, tuple(added)))


def a_segment(state: TopicState, partition: int, base: int, name: str, chance: np.random.Generator) -> Segment:
    low, high = sorted(chance.bytes(16) for _ in range(2))
    return Segment(
        path=f"{state.location}/data/partition={partition}/{base:020}-{name}-0.parquet",
        partition=partition,
        base_offset=base,
        end_offset=base + RECORDS,
        records=RECORDS,
        size_bytes=BYTES,
        scan_bytes=KEY_BYTES,
        min_timestamp_ms=1_700_000_000_000 + base,
        max_timestamp_ms=1_700_000_000_000 + base + RECORDS,
        null_keys=0,
        null_values=RECORDS // 50,
        min_value_size=100,
        min_key=low,
        max_key=high,
    )


def with_mask(segment: Segment) -> Segment:
    dead = RECORDS // 10
    mask = Mask(segment.path.replace("-0.parquet", "-1.deletes.parquet"), 3 * dead, dead)
    return replace(segment, records=RECORDS - dead, mask=mask)


def measure(folder: str, what: str) -> dict[str, float]:
    """In this process."""
    topic = lithify.open(folder).topic("wide")
    figures: dict[str, float] = {}
    for call in (what, f"{what}_again"):
        begun = time.process_time()
        CALLS[what](topic)
        figures[f"{call}_cpu_s"] = time.process_time() - begun
    peak = re.search(
        r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()
    )  # `getrusage` has the parent's as well
    assert peak is not None
    return {name: round(s, 3) for name, s in figures.items()} | {PEAK: int(peak[1]) // 1024}


def all_calls(folder: str) -> dict[str, float]:
    """The figures of all calls, each in a process of its own, and the largest peak."""
    figures: dict[str, float] = {}
    for what in CALLS:
        command = [sys.executable, __file__, "--measure", folder, what]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        figures |= found | {PEAK: max(found[PEAK], figures.get(PEAK, 0))}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--masked", action="store_true", help="each segment has a mask")
    parser.add_argument("--measure", nargs=2, metavar=("FOLDER", "WHAT"), help=argparse.SUPPRESS)
    add_publish(parser)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(*asked.measure)))
        return
    with shown(asked) as show:
        for segments in asked.segments:
            with tempfile.TemporaryDirectory() as folder:
                fill(folder, segments, asked.partitions, masked=asked.masked)
                size = sum(file.stat().st_size for file in Path(folder).rglob("*-m*.avro"))
                show(
                    segments=segments,
                    partitions=asked.partitions,
                    masked=asked.masked,
                    size_tb=segments * BYTES / 1e12,
                    manifests_mb=round(size / 1e6, 1),
                    **all_calls(folder),
                )


if __name__ == "__main__":
    main()
