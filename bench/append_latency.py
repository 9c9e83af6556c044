"""The latency of appends as a topic ages: 2,000 appends with a round after every tenth.

    python bench/append_latency.py [--appends 2000] [--every 10]
    python bench/append_latency.py --partitions 100 1000 5000

The target is a median of the last 50 at most twice that of the first 50. Both depend on what else
the machine does at the time, so 50 more go to the aged topic and to a new one in turns. A round
here merges the log into one segment through the same port and commit gate as a real one, without
Spark, so that only the store is timed.

With `--partitions`, for each number: one record appended to a topic of so many partitions, all of which have records,
and to one of a single partition, in turns. The target is a ratio of 4.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lithify.api.wiring import open_warehouse
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import RoundReport
from lithify.service.commit import commit
from lithify.service.documents import put_report
from lithify.service.write.append import append
from shown import add_publish, shown

TOPIC = TopicName("default", "orders")
NEW_TOPIC = TopicName("default", "new")
SAMPLE = 50


def timed_ms(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def merge(warehouse: Warehouse) -> None:
    """A round that keeps every record: the log becomes one segment."""
    state = warehouse.store.load(TOPIC)
    old = warehouse.store.segments(state)
    records = pa.concat_tables(batch.to_arrow() for s in old for batch in warehouse.files.read(s, 0))
    run_id = warehouse.clock.new_id()
    arriving = warehouse.files.receive(state, records, now_ms=0, keep_offsets=True)
    new = warehouse.files.write(state, arriving[0], 0, run_id)
    report = RoundReport(str(TOPIC), state.version + 1, True, (), 0, 0, run_id=run_id)
    put_report(warehouse.store, state, run_id, report)

    def decide(newest: TopicState) -> TopicEdit:
        log = replace(newest.log(0), first_dirty_offset=state.log(0).log_end_offset)
        return TopicEdit(run_id, warehouse.clock.now_ms(), {0: log}, new, old, report_id=run_id)

    commit(warehouse, TOPIC, run_id, decide)


def measure(folder: str, appends: int, every: int) -> dict[str, object]:
    warehouse = open_warehouse(folder)
    state = warehouse.store.create_topic(NewTopic(TOPIC, "orders", TopicSettings(), 1, 0))

    def one_append_ms(topic: TopicName, n: int) -> float:
        batch = [Record(b"key-%d" % (n % 100), b"value-%d" % n)]
        return timed_ms(lambda: append(warehouse, topic, batch))

    append_ms, round_ms = [], []
    for n in range(appends):
        append_ms.append(one_append_ms(TOPIC, n))
        if n % every == every - 1:
            round_ms.append(timed_ms(lambda: merge(warehouse)))
    warehouse.store.create_topic(NewTopic(NEW_TOPIC, "new", TopicSettings(), 1, 0))
    in_turns = [(one_append_ms(TOPIC, n), one_append_ms(NEW_TOPIC, n)) for n in range(SAMPLE)]
    first, last = statistics.median(append_ms[:SAMPLE]), statistics.median(append_ms[-SAMPLE:])
    return {
        "appends": appends,
        "rounds": len(round_ms),
        "first_ms": round(first, 1),
        "last_ms": round(last, 1),
        "ratio": round(last / first, 2),
        "ratio_in_turns": round(statistics.median(aged / new for aged, new in in_turns), 2),
        "slowest_ms": round(max(append_ms), 1),
        "round_median_ms": round(statistics.median(round_ms or [0.0]), 1),
        "metadata_kb": _metadata_kb(state),
    }


def _metadata_kb(state: TopicState) -> float:
    """The size of the newest metadata of a topic."""
    metadata = Path(state.location.removeprefix("file://")) / "metadata"
    return round(max(metadata.glob("*.metadata.json")).stat().st_size / 1000, 1)


def measure_partitions(folder: str, partitions: int) -> dict[str, object]:
    """Medians of `SAMPLE` appends of one record: wall and processor time, in ms, and their ratios."""
    warehouse = open_warehouse(folder)
    topics = {1: NEW_TOPIC, partitions: TOPIC}
    for number, name in topics.items():
        state = warehouse.store.create_topic(NewTopic(name, name.topic, TopicSettings(), number, 0))
        for _ in range(2):
            append(warehouse, name, [Record(b"k", b"v", partition=p) for p in range(number)])
    took: dict[int, list[tuple[float, float]]] = {number: [] for number in topics}
    for n in range(SAMPLE):
        for number, name in topics.items():
            cpu = time.process_time()
            wall_ms = timed_ms(lambda: append(warehouse, name, [Record(b"key-%d" % n, b"v")]))  # noqa: B023
            took[number].append((wall_ms, (time.process_time() - cpu) * 1000))
    medians = {number: [statistics.median(kind) for kind in zip(*times, strict=True)] for number, times in took.items()}
    return {
        "partitions": partitions,
        "append_ms": round(medians[partitions][0], 1),
        "cpu_ms": round(medians[partitions][1], 1),
        "append_to_one_ms": round(medians[1][0], 1),
        "to_one_cpu_ms": round(medians[1][1], 1),
        "ratio": round(medians[partitions][0] / medians[1][0], 2),
        "cpu_ratio": round(medians[partitions][1] / medians[1][1], 2),
        "metadata_kb": _metadata_kb(state),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Times appends over the life of a topic.")
    parser.add_argument("--appends", type=int, default=2_000)
    parser.add_argument("--every", type=int, default=10, help="appends between two rounds")
    parser.add_argument("--partitions", type=int, nargs="+", help="appends to topics of so many, and to one of one")
    add_publish(parser)
    asked = parser.parse_args()
    with shown(asked) as show:
        for partitions in asked.partitions or ():
            with tempfile.TemporaryDirectory() as folder:
                show(**measure_partitions(folder, partitions))
        if not asked.partitions:
            with tempfile.TemporaryDirectory() as folder:
                show(**measure(folder, asked.appends, asked.every))


if __name__ == "__main__":
    main()
