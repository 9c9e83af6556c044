"""The key pass of one large log on N slots, by how its keys come to the tasks of their ranges.

    python bench/key_ranges.py --data FOLDER [--records 20000000] [--slots 4] [--ways direct-4 shuffled-4] [--times 3]

`direct-4` reads all keys in each of four ranges, `ahead-2` the same in two whose tasks keep two cores busy each,
`shuffled-4` reads them once and sends them to four ranges, and `chosen` is what a round does by itself. Seconds, CPU
seconds, bytes of keys read, bytes shuffled and the largest process of each role, of a session that has done it before.
`--round` runs a whole round once, after these.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from keyed_segments import Shape, keyed_segments, topic_of
from lithify.api.topic import Topic
from lithify.api.wiring.late_engine import workers
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.columnar.keypass.tally import Tally
from lithify.model.settings.units import parse_size_bytes
from lithify.ports.engine import RunLimits
from lithify.rules.compaction.key_pass_shape import KeyPassShape, key_pass_shapes
from lithify.rules.compaction.planner import LogPlan
from lithify.service.group_reads import read_groups
from lithify.service.round.topic_run import plan_rounds
from lithify.spark.keypass.job import LogWork, key_pass_job
from lithify.spark.keypass.results import collect_counts
from process_tree import measured
from shown import add_publish, shown
from way import shuffled_bytes


@dataclass(frozen=True, slots=True)
class KeyPass:
    """The key pass of a planned log, on a session."""

    plan: LogPlan
    topic: Topic
    choice: SparkChoice
    limits: RunLimits

    def run(self, shape: KeyPassShape) -> int:
        """Bytes of keys read."""
        at_work = workers(self.topic.warehouse, self.choice)
        job = key_pass_job(self.choice.session, at_work, self.limits, [LogWork(0, 0, self.plan, shape)])
        dead = job.results.persist()
        tallies = collect_counts(dead).tallies[0]
        dead.unpersist()
        return sum(tally.bytes_read for tally in tallies if isinstance(tally, Tally))

    def shape(self, way: str, slots: int) -> KeyPassShape:
        """That of a way."""
        if way == "chosen":
            return key_pass_shapes([self.plan], self.limits.task_memory_bytes, slots, one_machine=True)[0]
        name, ranges = way.split("-")
        return KeyPassShape(int(ranges), shuffled=name == "shuffled", ahead=name == "ahead")


def planned(topic: Topic) -> LogPlan:
    """The round of its only log."""
    state = topic.state()
    reads = read_groups(topic.warehouse, state)
    (plan,) = plan_rounds(topic.warehouse, state, None, topic.warehouse.clock.now_ms(), reads)
    return plan


def figures(keys: KeyPass, way: str, slots: int) -> dict[str, Any]:
    """What one run takes."""
    shape = keys.shape(way, slots)
    before = shuffled_bytes(keys.choice.session)
    began = time.monotonic()
    with measured(os.getpid()) as used:
        read = keys.run(shape)
        wall_s = time.monotonic() - began
    shuffled = shuffled_bytes(keys.choice.session) - before
    peaks = {f"{role}_mib": size / 2**20 for role, size in used.peak_bytes.items()}
    taken = {"ranges": shape.ranges, "wall_s": wall_s, "cpu_s": used.cpu_s}
    return {**taken, "read_mb": read / 1e6, "shuffled_mb": shuffled / 1e6, **peaks}


def _shape(asked: argparse.Namespace) -> Shape:
    once, keys = asked.distinct == 1, int(asked.records * asked.distinct)
    plain = Shape(asked.records, keys, max(1, asked.records // 1_000_000), 8, 0.0 if once else 0.02)
    return replace(plain, distinct=once, written=asked.written, chosen=asked.chosen)


def round_figures(topic: Topic, session: Any, task_memory: str) -> dict[str, Any]:
    """What a whole round takes."""
    before = shuffled_bytes(session)
    with measured(os.getpid()) as used:
        (report,) = topic.compact(spark=session, task_memory=task_memory).logs
    phases = {f"{phase}_s": ms / 1000 for phase, ms in report.phases_ms.items()}
    peaks = {f"{role}_mib": size // 2**20 for role, size in used.peak_bytes.items()}
    moved = {"read_mb": report.bytes_read / 1e6, "shuffled_mb": (shuffled_bytes(session) - before) / 1e6}
    return {"task_memory": task_memory, "cpu_s": round(used.cpu_s, 2), **moved, **phases, **peaks}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures ways of the key pass.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the log; made if it is not there")
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--distinct", type=float, default=0.2, help="keys for each record; 1: each key comes once")
    parser.add_argument("--chosen", default="uniform", help="or hot: half of the records are of one key")
    parser.add_argument("--written", default="digits", help="what keys are: digits, uuid, long")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--task-memory", default="1GiB")
    parser.add_argument("--ways", nargs="*", default=["chosen"])
    parser.add_argument("--round", action="store_true")
    parser.add_argument("--times", type=int, default=3)
    add_publish(parser)
    asked = parser.parse_args()
    shape = _shape(asked)
    folder = asked.data / shape.name
    folder.mkdir(parents=True, exist_ok=True)
    with shown(asked) as show, tempfile.TemporaryDirectory() as warehouse:
        topic = topic_of(keyed_segments(folder.resolve(), shape), Path(warehouse))
        conf = {"spark.master": f"local[{asked.slots}]"}
        choice = SparkChoice(SparkChoice(conf=conf).factory()(), conf)
        key_pass = KeyPass(planned(topic), topic, choice, RunLimits(parse_size_bytes(asked.task_memory)))
        turns: dict[str, list[dict[str, Any]]] = {way: [] for way in asked.ways}
        for turn in range(asked.times + 1):
            for way in asked.ways:
                found = figures(key_pass, way, asked.slots)
                if turn:
                    turns[way].append(found)
        log = {"slots": asked.slots, "records": asked.records, "keys": shape.keys}
        for way, runs in turns.items():
            medians = {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}
            show(way=way, **log, **medians)
        if asked.round:
            show(way="whole round", **log, **round_figures(topic, choice.session, asked.task_memory))


if __name__ == "__main__":
    main()
