"""A Kafka topic as a stream: what is left behind where it does not start, and how it ends."""

from __future__ import annotations

import tempfile
from threading import Event, Thread, Timer
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from lithify.errors import BrokerError, ConflictError, ConnectorError, EngineError, SourceLostError, SourceWentBackError
from lithify.spark.kafka.kafka_stream import StreamPlan, TopicStream, noted_ends, spark_error


class Refusing:
    """A session that starts no stream."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def newSession(self):  # noqa: N802 - Spark's name
        raise self._error


def a_stream(checkpoint: str | None = None) -> TopicStream:
    plan = StreamPlan("t", {}, {0: 0}, True, 9, 0, checkpoint)
    return TopicStream(plan, lambda _batch: None)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (PySparkException("[DATA_SOURCE_NOT_FOUND] kafka"), ConnectorError),
        (PySparkException("no"), EngineError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_stream_that_does_not_start_leaves_no_checkpoint(error, raised, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(raised):
        a_stream().start(Refusing(error), "r")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_given_stays(tmp_path):
    with pytest.raises(EngineError):
        a_stream(str(tmp_path)).start(Refusing(PySparkException("no")), "r")
    assert tmp_path.is_dir()


ROWS = SimpleNamespace(sparkSession=None)
"""The rows of a batch that nobody reads."""


class OneBatch:
    """A session whose stream has one batch, in a thread of its own. To stop it interrupts nothing in Python."""

    isActive = True  # noqa: N815 - Spark's name

    def __init__(self, take):
        self.thread = Thread(target=self._run, args=(take,))
        self.raised = None

    def _run(self, take):
        try:
            take(ROWS, 0)
        except Exception as error:
            self.raised = error

    def stop(self):
        self.isActive = False

    def exception(self):
        return self.raised


def stopped_in(on_batch):
    """A stream that was stopped while its batch went on, and why it ended."""
    begun, goes_on = Event(), Event()

    def take(batch):
        begun.set()
        goes_on.wait(10)
        on_batch(batch.rows)

    stream = TopicStream(StreamPlan("t", {}, {0: 0}, False, 9, 0, "given"), take)
    stream.query = OneBatch(stream._take)
    stream.query.thread.start()
    begun.wait(10)
    Timer(0.05, goes_on.set).start()
    stream.stop()
    return stream.end()


def test_a_stream_that_is_stopped_waits_for_the_batch_under_way():
    taken = []
    assert stopped_in(taken.append) is None
    assert taken == [ROWS]


@pytest.mark.parametrize("error", [PySparkException("Job aborted: cancelled"), BrokerError("interrupted")])
def test_the_error_of_a_batch_that_was_interrupted_by_a_stop_is_none(error):
    def interrupted(_frame):
        raise error

    assert stopped_in(interrupted) is None


def test_another_error_of_a_batch_while_it_is_stopped_is_reported():
    def another_wrote(_frame):
        raise ConflictError("another program writes to it")

    assert isinstance(stopped_in(another_wrote), ConflictError)


NOTE = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795360698743,"conf":{"spark.sql.shuffle.partitions":"4"}}
{"t":{"1":7,"0":12}}"""


def test_spark_notes_up_to_where_a_batch_reads():
    assert noted_ends(NOTE, "t", "offsets/3") == {0: 12, 1: 7}
    with pytest.raises(EngineError, match="u: offsets/3 does not have the offsets up to which"):
        noted_ends(NOTE, "u", "offsets/3")


@pytest.mark.parametrize("told", ["5", "[]", '{"0":null}', '{"0":[]}', '{"0":1e999}', '{"x":1}', "[" * 100_000])
def test_a_note_that_was_damaged_says_nothing(told):
    with pytest.raises(EngineError, match="t: offsets/3 does not have the offsets up to which"):
        noted_ends(f'v1\n{{"t":{told}}}', "t", "offsets/3")


def test_records_that_go_while_they_are_read_are_told_without_sparks_advice_to_go_on():
    java = "org.apache.spark.sql.kafka010.KafkaIllegalStateException: Some data may have been lost because they are not"
    said = PySparkException(f"An error occurred while calling o1.collectToPython.\n: {java} …\n\tat {'x.' * 5_000}")
    error = spark_error(said, "orders", {})
    assert isinstance(error, SourceLostError) and "x.x." not in str(error)
    assert str(error) == (
        "orders: Kafka deleted records before this stream had copied them "
        "(start it again to see the offsets, or continue after them with accepts_loss=True)"
    )


_DATA_LOSS = (
    "Some data may have been lost because they are not available in Kafka any more; set failOnDataLoss to false."
)


@pytest.mark.parametrize(
    "text",
    [
        f"[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] {_DATA_LOSS} Partition t-0 offset was changed from 9 to 3.",
        f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] {_DATA_LOSS} Partitions Set(t-1) have been deleted.",
        f"[KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS] {_DATA_LOSS} They may have been deleted.",
        "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] The resolved start offset 9 is greater than 3.",
    ],
)
def test_a_source_that_changed_under_a_stream_is_not_one_whose_loss_can_be_accepted(text):
    """A topic that was recreated with fewer partitions, or less in it, while it was read."""
    error = spark_error(RuntimeError(text), "t", {})
    assert isinstance(error, SourceWentBackError)
    assert "failOnDataLoss" not in str(error)
    assert error.hint is not None and "start again, so that the copy is compared" in error.hint
