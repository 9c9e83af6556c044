"""A copy of a Kafka topic as a standing job, whose gateways are frozen and killed while records come in (C6)."""

from __future__ import annotations

import signal
from pathlib import Path
from threading import Event, Thread

import pytest

import lithify
from gateway.standing.gateways import GatewayProcess, waited
from lithify.api.wiring.system_clock import SystemClock
from lithify.coordination.leases.gateways.jobs_sql import open_standing_jobs
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.jobs.definition import StandingJob
from support.kafka.broker import KafkaBroker, read_all
from support.kafka.feeding import feed
from support.kafka.ingest import COPIED_S, ingest_command
from support.processes.frozen import freeze

pytestmark = pytest.mark.timeout(600)
PROGRAM = ("-m", "lithify")


def test_a_copy_changes_gateways_and_repeats_and_loses_nothing(tmp_path: Path, broker: KafkaBroker) -> None:
    topic, leases = (
        broker.make_topic(2, cleanup_policy="compact", min_cleanable_dirty_ratio="1.0"),
        tmp_path / "jobs.db",
    )
    lake = lithify.open(str(tmp_path / "lake"))
    url = f"sqlite:///{leases}"
    arguments = ["--warehouse", str(tmp_path / "lake")]
    arguments += ingest_command(broker, "--continuous", "--interval", "100ms", "--topic", topic, "--into", "copy")
    job = StandingJob("copy", tuple(arguments), None, paused=False, created_ms=SystemClock().now_ms())
    assert open_standing_jobs(url, None, WarehouseScope.of("lake")).add(job)

    def ends() -> list[int]:
        return [log.log_end_offset for log in lake.topic("copy").state().logs] if lake.topics() else []

    def grows() -> None:
        """Until more records of both logs are copied."""
        before = ends() or [0, 0]
        waited(lambda: all(new > old for new, old in zip(ends() or before, before, strict=True)), COPIED_S)

    done = Event()
    feeding = Thread(target=feed, args=(broker, topic, done))
    feeding.start()
    try:
        with GatewayProcess(url, "a", *PROGRAM) as first, GatewayProcess(url, "b", *PROGRAM) as second:
            waited(lambda: first.told("job-started") or second.told("job-started"))
            frozen, other = (first, second) if first.told("job-started") else (second, first)
            grows()
            freeze(frozen.process, leases)
            other.wait_for("job-started")
            grows()
            frozen.signal(signal.SIGCONT)
            frozen.wait_for("job-stopped")
            other.signal(signal.SIGKILL)
            frozen.wait_for("job-started", times=2)
            grows()
            done.set()
            feeding.join()
            waited(
                lambda: ends() == [broker.log_start_and_end(topic, partition)[1] for partition in range(2)], COPIED_S
            )
            frozen.signal(signal.SIGTERM)
            assert frozen.ended() == 0
    finally:
        done.set()
        feeding.join()
    for partition in range(2):
        theirs = [(m.offset(), m.key(), m.value()) for m in read_all(broker, topic, partition)]
        assert [(r.offset, r.key, r.value) for r in lake.topic("copy").reader(partition)] == theirs
