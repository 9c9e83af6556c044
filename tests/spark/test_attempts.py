"""Several attempts of one task, at once and one after the other: none ever touches what another has written.

Spark starts a task again that is slow (speculation) or whose executor it has lost, and what it gave up
may go on writing long after the commit. Every place of ours that writes in tasks is run here by two tasks
with the same records side by side, and then once more (C6).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from lithify.api.wiring import open_warehouse
from lithify.columnar.segment.writer import SegmentSpec
from lithify.model.segment import Segment
from lithify.model.staged import Destination
from lithify.ports.source import Copying
from lithify.spark.kafka.copied_logs import copied_logs
from lithify.spark.rewrite_job import RewriteTask, SourceTask, rewritten
from lithify.spark.tasks import Pace, Workers
from lithify.spark_source.options import write_options
from lithify.spark_source.writing import BatchWriter
from spark.topics import files_of, lake_for, read_by, some_records
from support.topics.stored_topics import ACCESS, NO_LIMITS, records_in

RECORDS = 300
Attempts = Callable[[], list[tuple[Segment, ...]]]
"""Does the same work in two tasks: what each of them has written."""


@pytest.fixture(params=["ingest", "sink", "round"])
def attempts(request, session, tmp_path) -> Attempts:
    lake = lake_for(session, tmp_path)
    source, target = lake.create_topic("source"), lake.create_topic("target")
    source.append(some_records(RECORDS))
    rows = read_by(session.read, "source", includeHeaders=True)
    state = target.state()

    def ingest() -> list[tuple[Segment, ...]]:
        copying = Copying(Destination.of(state), ACCESS, "run", drops_keyless=False)
        return [log.segments for log in copied_logs(rows.union(rows), copying)]

    taken = rows.select("key", "value", "timestamp", "headers")
    connect = partial(open_warehouse, str(tmp_path / "lake"))
    writer = BatchWriter(connect, write_options({"topic": "target"}), taken.schema, overwrite=False)

    def sink() -> list[tuple[Segment, ...]]:
        return [log.segments for staged in in_tasks(taken.union(taken), writer.write) for log in staged.logs]

    def compaction() -> list[tuple[Segment, ...]]:
        (segment,) = files_of(source)
        pace = Workers(ACCESS, 2, Pace(time.monotonic, time.sleep), lambda: "seed").task_pace(NO_LIMITS, 2)
        sources = (SourceTask(segment, RECORDS, None),)
        task = RewriteTask(0, ACCESS, SegmentSpec.of(state, 0, "run"), sources, pace)
        outcomes = rewritten(session, [task, task], [0, 1], None).collect()
        return [pickle.loads(row["outcome"]).segments for row in outcomes]

    return {"ingest": ingest, "sink": sink, "round": compaction}[request.param]


def in_tasks(frame: DataFrame, work: Callable[[Iterator[pa.RecordBatch]], object]) -> list:
    """What `work` makes of the rows of each task."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(work(batches))], pa.binary())})

    return [pickle.loads(row["result"]) for row in frame.mapInArrow(run, "result binary").collect()]


def test_attempts_of_one_task_write_files_of_their_own(attempts: Attempts) -> None:
    one, other = attempts()
    before = {s.path: Path(s.path.removeprefix("file://")).read_bytes() for s in chain(one, other)}
    assert len(before) == len(one) + len(other)

    late = [segment for segments in attempts() for segment in segments]

    assert not before.keys() & {segment.path for segment in late}
    assert before == {path: Path(path.removeprefix("file://")).read_bytes() for path in before}
    for written in (one, other):
        assert sum(len(records_in(segment)) for segment in written) == RECORDS
