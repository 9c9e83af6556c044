"""Rounds from end to end on PostgreSQL and S3, by the kernels and on Spark, and what readers get then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.ports.store import Warehouse
from lithify.service.change.sweep import sweep
from lithify.service.clock_check import trust_clock
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.spark.session.start import session_factory
from support.engines.kernel import KernelEngine
from support.store.builders import NOW_MS, ORDERS, Place

from .conftest import Backend

LATER_MS = 20 * 366 * 86_400_000
"""More than the machine's clock, by which S3 dates files, is ahead of that of the test."""

RETENTION_MS = 2 * 86_400_000
"""More than `versions.retention.ms`, which lists and manifests are kept from when a sweep finds them unnamed."""


def records(first: int, last: int) -> list[lithify.Record]:
    """Offsets first to last of one log: twelve keys in turn, every fifth record a tombstone."""
    return [
        lithify.Record(b"key-%d" % (n % 12), None if n % 5 == 4 else b"value-%d" % n, NOW_MS + n, partition=0)
        for n in range(first, last)
    ]


@pytest.mark.parametrize("config", [{}, {"compaction_mode": "side-by-side"}])
def test_a_round_of_the_kernels(backend: Backend, place: Place, config: dict[str, object]) -> None:
    place.create(**config)
    warehouse = Warehouse(place.store, place.files, place.clock)
    for first in (0, 20, 40):
        append(warehouse, ORDERS, records(first, first + 20))

    report = compact(warehouse, KernelEngine(ranges=2, access=warehouse.files.access), ORDERS, RunRequest())

    state = place.store.load(ORDERS)
    kept = place.view(state) if config else place.records(state)
    assert report.logs[0].error is None
    assert [r.offset for r in kept] == list(range(48, 60))
    place.clock.advance(LATER_MS)
    trust_clock(warehouse, ORDERS)
    assert not any(file.path.endswith(".avro") for file in sweep(warehouse, ORDERS, delete=True).files)
    place.clock.advance(RETENTION_MS)
    gone = sweep(warehouse, ORDERS, delete=True).files
    state = place.store.load(ORDERS)
    assert any(file.path.endswith(".avro") for file in gone)
    assert not {file.path for file in gone} & {file.path for file in place.store.stored_files(state)}
    assert [r.offset for r in (place.view(state) if config else place.records(state))] == list(range(48, 60))


@pytest.fixture
def session() -> Iterator[SparkSession]:
    session = session_factory(None, {"spark.master": "local[2]"})()
    yield session
    session.stop()


@pytest.mark.spark
def test_a_round_on_spark_and_its_proof(place: Place, session: SparkSession) -> None:
    topic = lithify.open(catalog="prod").create_topic("orders")
    topic.append(records(0, 30))
    topic.append(records(30, 60))

    report = topic.compact(spark=session)
    topic.append(records(60, 80))

    assert report.changed
    assert report.logs[0].error is None
    assert [r.offset for r in place.records(topic.state())] == list(range(48, 80))
    verified = topic.verify(spark=session)
    assert verified.against is not None
    assert verified.findings == ()
