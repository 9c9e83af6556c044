"""A Kafka topic as a stream: what is left behind where it does not start."""

from __future__ import annotations

import tempfile

import pytest
from pyspark.errors import PySparkException

from lithify.errors import ConnectorError, EngineError
from lithify.spark.kafka_stream import StreamPlan, TopicStream


class Refusing:
    """A session that starts no stream."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property
    def readStream(self):  # noqa: N802 - Spark's name
        raise self._error


def a_stream(checkpoint: str | None = None) -> TopicStream:
    plan = StreamPlan("t", {}, {0: 0}, True, None, 0, checkpoint)
    return TopicStream(plan, lambda _frame: None)


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
