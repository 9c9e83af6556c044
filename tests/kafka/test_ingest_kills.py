"""An ingest that is killed while records come in: nothing twice, nothing left out (C6)."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread

from pyspark.sql import SparkSession

import lithify
from lithify.service.round.compact import RunRequest, compact
from support.engines.kernel import KernelEngine
from support.kafka.broker import KafkaBroker, read_all
from support.kafka.feeding import feed
from support.kafka.ingest import KafkaCopy, ingest_program, wait_for_batches
from support.processes.programs import end


def test_an_ingest_that_is_killed_repeats_and_loses_nothing(
    tmp_path: Path, broker: KafkaBroker, session: SparkSession
) -> None:
    """It goes on with the copy of another, and another with its copy."""
    topic = broker.make_topic(2, cleanup_policy="compact")
    lake = lithify.open(str(tmp_path / "lake"))
    another = KafkaCopy(lake, broker, session, topic)
    done = Event()
    feeding = Thread(target=feed, args=(broker, topic, done))
    feeding.start()
    try:
        assert another.ingest().error is None
        process = ingest_program(tmp_path, broker, "--continuous", "--topic", topic, "--into", "copy")
        wait_for_batches(tmp_path, process, 3)
        time.sleep(0.1)  # into the next one
        end(process)
        process.wait(timeout=30)
        copy = lake.topic("copy")
        compact(copy.warehouse, KernelEngine(access=copy.warehouse.files.access), copy.topic_name, RunRequest())
    finally:
        done.set()
        feeding.join()
    assert another.ingest().error is None

    for partition in range(2):
        theirs = {m.offset(): (m.key(), m.value()) for m in read_all(broker, topic, partition)}
        mine = {r.offset: (r.key, r.value) for r in copy.reader(partition)}
        assert copy.state().log(partition).log_end_offset == max(theirs) + 1
        assert mine.items() <= theirs.items()
        assert _latest(mine) == _latest(theirs)
        clean = copy.state().log(partition).first_dirty_offset
        assert {o for o in mine if o >= clean} == {o for o in theirs if o >= clean}, (
            "what no round has touched is whole"
        )


def _latest(records: dict[int, tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    return {records[offset][0]: records[offset][1] for offset in sorted(records)}
