"""What JVMs do whose classes are archived for those that tests start (`processes/class_archive.py`).

    PYTHONPATH=tests python -m support.class_trainings      makes the archives that are missing

`scripts/check.py` has them made before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support.kafka.broker import ARCHIVE as BROKERS
from support.kafka.broker import KafkaBroker, read_all
from support.processes.class_archive import ARCHIVE as SPARKS
from support.processes.class_archive import make_archives, spark_home
from support.processes.programs import end, running, start
from support.servers.tcp_proxy import wait_until

MAKE_S = 300.0
TRAINING = """
import sys
from threading import Event
import lithify
from lithify import Record, spark_source
from lithify.spark.session.start import session_factory

session = session_factory(None, {"spark.master": "local[2]"})()
topic = lithify.open(sys.argv[1]).create_topic("orders", 2)
for _ in range(2):
    topic.append([Record(b"k%d" % n, b"v", partition=n % 2) for n in range(10)])
assert topic.compact(spark=session).failed == ()
assert topic.verify(spark=session).findings == ()
spark_source.register(session, sys.argv[1])
frame = session.read.format("lithify").load("orders")
assert frame.groupBy("partition").count().count() == 2
came = Event()

def take(batch, _number):
    if batch.mapInArrow(lambda tables: tables, batch.schema).collect():
        came.set()

rows = session.readStream.format("rate").option("rowsPerSecond", 100).load()
stream = rows.writeStream.foreachBatch(take).option("checkpointLocation", sys.argv[1] + "/stream").start()
assert came.wait(60)
stream.stop()
session.stop()
"""


def run_spark(options: Sequence[str], folder: Path) -> None:
    """Until its JVM has ended."""
    program = start(
        "-c",
        TRAINING,
        str(folder / "lake"),
        env={"SPARK_SUBMIT_OPTS": " ".join(options), "SPARK_HOME": str(spark_home())},
    )
    try:
        _, errors = program.communicate(timeout=MAKE_S)
        assert program.returncode == 0, errors
        wait_until(lambda: not running(program.pid), "Spark's JVM does not end", MAKE_S)
    finally:
        end(program)


def run_broker(options: Sequence[str], folder: Path) -> None:
    """A broker that is asked for what tests ask for, and is stopped in order."""
    broker = KafkaBroker(folder, jvm=options)
    topic = broker.make_topic(1, cleanup_policy="compact")
    producer = broker.producer(transactional_id="t")
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, key=b"k", value=b"v")
    producer.commit_transaction()
    broker.alter_topic(topic, min_cleanable_dirty_ratio="0.1")
    wait_until(lambda: len(read_all(broker, topic)) == 1, "the record does not come", MAKE_S)
    broker.stop()


if __name__ == "__main__":
    make_archives({SPARKS: run_spark, BROKERS: run_broker})
