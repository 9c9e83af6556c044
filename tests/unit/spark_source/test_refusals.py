"""Errors that a worker of Spark reports without a traceback: those of Lithify, and in workers alone."""

from __future__ import annotations

import os

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from lithify.errors import RefusedError
from lithify.spark_source.columns import SCHEMA
from lithify.spark_source.data_source import LithifySource
from lithify.spark_source.refusals import without_traceback


@pytest.mark.parametrize(
    ("error", "in_worker", "hides"),
    [(RefusedError("no"), True, True), (RefusedError("no"), False, False), (ValueError("a defect"), True, False)],
)
def test_only_our_errors_hide_their_traceback_and_only_in_a_worker(error, in_worker, hides, monkeypatch):
    monkeypatch.setattr(os, "environ", {"SPARK_PYTHON_RUNTIME": "PYTHON_WORKER"} if in_worker else {})

    @without_traceback()
    def ask():
        raise error

    with pytest.raises(type(error)):
        ask()
    assert ("SPARK_HIDE_TRACEBACK" in os.environ) == hides


@pytest.mark.parametrize(
    ("options", "schema", "says"),
    [
        ({"subscribe": "t", "endingOffsets": "latest"}, SCHEMA, "endingOffsets: a stream has no end"),
        ({"subscribe": "t", "warehouse": "a", "catalog": "b"}, SCHEMA, "give warehouse or catalog, not both"),
        ({"subscribe": "t"}, StructType().add("keys", "binary"), "the schema has an unknown column 'keys'"),
    ],
)
def test_a_stream_is_refused_by_its_reader_and_not_before_there_is_one(options, schema, says):
    """PySpark would tell of a variable of its own that is not set."""
    reader = LithifySource(options).streamReader(schema)
    for ask in (
        reader.initialOffset,
        lambda: reader.latestOffset({}, ReadAllAvailable()),
        lambda: reader.partitions({}, {}),
    ):
        with pytest.raises(RefusedError, match=says):
            ask()
    reader.stop()
