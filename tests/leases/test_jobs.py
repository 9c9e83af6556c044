"""Standing jobs in both databases: adds that race, and texts of any kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from leases.conftest import SHARED
from lithify.coordination.leases.gateways.jobs_sql import SqlStandingJobs, open_standing_jobs
from lithify.gateway.standing.output import JobOutput
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.jobs.definition import JobState, StandingJob, StoredJob
from support.servers.postgres import Postgres

shared = pytest.mark.parametrize("url", SHARED, indirect=True)
JOB = StandingJob("in", ("hydrate", "ü \n'\udcff"), 60_000, paused=False, created_ms=5)
ODD = b'{"exit_code": 1, "message": "a\\u0000b\\ud800", "code": "\\u0000"}\n'


def jobs_of(url: str) -> SqlStandingJobs:
    return open_standing_jobs(url, None, WarehouseScope.of("lake"))


@shared
def test_what_a_job_prints_can_be_stored(url: str) -> None:
    output, pieces = JobOutput(lambda _seconds: None), iter([ODD, b""])
    output.follow(lambda _most: next(pieces), errors=True)
    pieces = iter([b'{"text": "\\u0000\\ud800"}\n', b""])
    output.follow(lambda _most: next(pieces), errors=False)
    error, code = output.error()
    state = JobState("g", True, 1, 2, exit_code=137, error=error, error_code=code, report=output.report())
    jobs = jobs_of(url)
    assert jobs.add(JOB)
    jobs.note([(JOB, state)])
    assert jobs.jobs() == (StoredJob(JOB, state),)
    assert jobs.pause("in", paused=True)
    assert jobs.jobs() == (StoredJob(replace(JOB, paused=True), state),)
    assert jobs.remove("in")
    assert jobs.jobs() == ()


def test_a_database_without_an_encoding_stores_what_a_job_prints(server: Postgres) -> None:
    """As `initdb` makes it in the locale C."""
    server.run("CREATE DATABASE plain ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    try:
        jobs, state = jobs_of(server.uri("plain")), JobState("g", True, 1, 2, error="no topic ü … �")
        assert jobs.add(JOB)
        jobs.note([(JOB, state)])
        assert jobs.jobs() == (StoredJob(JOB, state),)
    finally:
        server.drop_database("plain")


@shared
def test_of_adds_that_race_one_gets_the_name(url: str) -> None:
    given = [replace(JOB, created_ms=number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda job: jobs_of(url).add(job), given))
    assert sum(added) == 1
    assert jobs_of(url).jobs() == (StoredJob(given[added.index(True)], None),)
