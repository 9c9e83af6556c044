"""What the tasks of an ingest and of a writer are sent is small, whatever the topic has been through.

Above a mebibyte PySpark sends it through files on the disks of the driver and of the executors, and there are
credentials in it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark.cloudpickle import dumps
from pyspark.sql.types import BinaryType, StructType

from lithify.columnar.files.access import FileAccess
from lithify.model.staged import Destination
from lithify.model.topic.log import LogState, TombstoneStep
from lithify.model.topic.state import TopicState
from lithify.ports.source import Copying
from lithify.rules.lifecycle.admission import MAX_PARTITIONS
from lithify.spark_source.options import write_options
from lithify.spark_source.writing import BatchWriter
from support.builders import a_topic

BROADCAST_BYTES = 2**20
"""What is larger PySpark makes a broadcast of (`spark.broadcast.UDFCompressionThreshold`)."""
ACCESS = FileAccess({"s3.secret-access-key": "hunter2"})


def a_state(partitions: int) -> TopicState:
    """Every log of it is old, has ended far out, and shares nothing with the others."""

    def log(p: int) -> LogState:
        steps = tuple(TombstoneStep(p * 1_000_003 + n, 1_700_000_000_000 + n, n) for n in range(4))
        return LogState(p, log_end_offset=2**62 + p, steps=steps, run_ids=tuple(f"{p:032}{n}" for n in range(8)))

    return a_topic(*map(log, range(partitions)), location="s3://b/t")


def test_an_ingest_sends_little_of_a_large_topic() -> None:
    copying = Copying(Destination.of(a_state(MAX_PARTITIONS)), ACCESS, "run", drops_keyless=False)
    assert len(dumps(copying)) < BROADCAST_BYTES / 4


def test_a_writer_sends_little_of_a_large_topic() -> None:
    schema = StructType().add("key", BinaryType()).add("value", BinaryType())
    writer = BatchWriter(open_warehouse, write_options({"topic": "t"}), schema, overwrite=False)
    assert len(dumps(writer)) < BROADCAST_BYTES / 4


def open_warehouse() -> Any:
    """The part of a warehouse that is asked when a batch is planned."""
    state = a_state(MAX_PARTITIONS)
    return SimpleNamespace(
        files=SimpleNamespace(access=ACCESS),
        store=SimpleNamespace(load=lambda _name: state),
        clock=SimpleNamespace(now_ms=lambda: 0, new_id=lambda: "run"),
    )
