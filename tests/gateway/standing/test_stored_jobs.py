"""Standing jobs in the database: who adds, changes and notes at once, and what others have written there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
import requests
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

import lithify
from lithify import Lake
from lithify.api.wiring.shared_place import shared_place
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.gateways import jobs_sql
from lithify.coordination.leases.gateways.jobs_sql import SqlStandingJobs, open_standing_jobs
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.errors import CoordinationError, RefusedError
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.jobs.definition import JobState, StandingJob, StoredJob
from lithify.reports.jobs import UNSEEN_MS, JobStanding, StandingJobInfo
from support.servers.gateways import serving_gateway

T = TypeVar("T")

JOB = StandingJob("in", ("hydrate", "ü \n'"), None, paused=False, created_ms=5)
RUNNING = JobState("g", running=True, since_ms=10, seen_ms=20)
FAILED = JobState("g", False, 30, 30, next_ms=99, failures=2, exit_code=1, error="e", error_code="Broker", report="{}")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/leases.db"


def jobs_of(url: str, scope: str = "lake") -> SqlStandingJobs:
    return open_standing_jobs(url, None, WarehouseScope.of(scope))


@pytest.fixture
def jobs(url: str) -> SqlStandingJobs:
    return jobs_of(url)


def test_a_job_is_read_as_it_was_written(jobs: SqlStandingJobs) -> None:
    assert (jobs.jobs(), jobs.remove("in"), jobs.pause("in", paused=True)) == ((), False, False)
    assert jobs.add(JOB)
    assert jobs.jobs() == (StoredJob(JOB, None),)
    for state in (RUNNING, FAILED):
        jobs.note([(JOB, state)])
        assert jobs.jobs() == (StoredJob(JOB, state),)
    assert jobs.pause("in", paused=True)
    assert jobs.jobs()[0].job.paused
    assert jobs.remove("in") and not jobs.remove("in")


def test_a_name_is_taken_once_and_by_one_warehouse(url: str, jobs: SqlStandingJobs) -> None:
    assert jobs.add(JOB) and jobs.add(JOB)  # as a transaction that is done twice
    assert not jobs.add(StandingJob("in", ("replica", "run"), None, paused=False, created_ms=5))
    other = jobs_of(url, "other")
    assert other.jobs() == ()
    assert other.add(StandingJob("in", ("replica", "run"), None, paused=False, created_ms=5))
    assert other.remove("in")
    assert jobs.jobs() == (StoredJob(JOB, None),)


def test_a_note_of_a_removed_job_is_not_one_of_its_successor(jobs: SqlStandingJobs) -> None:
    jobs.add(JOB)
    jobs.remove("in")
    jobs.note([(JOB, RUNNING)])
    assert jobs.jobs() == ()
    later = StandingJob("in", JOB.arguments, None, paused=False, created_ms=6)
    jobs.add(later)
    jobs.note([(JOB, RUNNING)])
    assert jobs.jobs() == (StoredJob(later, None),)


class AnswerLost(Transactions):
    """Of each transaction the first commit is done, and its answer is lost."""

    def _tried(self, work: Callable[[Connection], T]) -> T:
        self._lost = False
        return super()._tried(work)

    def _once(self, work: Callable[[Connection], T]) -> T:
        done = super()._once(work)
        if not self._lost:
            self._lost = True
            raise OperationalError("COMMIT", {}, OSError("connection reset"))
        return done


def test_what_was_done_is_told_so_where_the_answer_was_lost(url: str, jobs: SqlStandingJobs) -> None:
    lossy = SqlStandingJobs(AnswerLost(engine_at(url)), jobs.scope)
    assert lossy.add(JOB)
    assert lossy.pause("in", paused=True)
    assert lossy.remove("in")
    assert jobs.jobs() == ()
    assert not lossy.remove("in")


def test_there_is_a_bound(jobs: SqlStandingJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_sql, "MOST_JOBS", 1)
    jobs.add(JOB)
    with pytest.raises(RefusedError):
        jobs.add(StandingJob("more", ("replica", "run"), None, paused=False, created_ms=5))
    assert len(jobs.jobs()) == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [("arguments", "[1]"), ("arguments", "{"), ("arguments", "[" * 9999), ("every_ms", "soon"), ("failures", None)],
)
def test_a_row_that_another_program_wrote_is_an_error_that_names_it(
    url: str, jobs: SqlStandingJobs, column: str, value: str | None
) -> None:
    jobs.add(JOB)
    jobs.note([(JOB, RUNNING)])
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(f"UPDATE lithify_standing_jobs SET {column} = ?", [value])
    with pytest.raises(CoordinationError) as unreadable:
        jobs.jobs()
    assert column in str(unreadable.value) and "'in'" in str(unreadable.value)


@pytest.mark.parametrize(
    ("state", "now_ms", "paused", "standing"),
    [
        (None, 0, False, JobStanding.WAITING),
        (RUNNING, 21, False, JobStanding.RUNNING),
        (RUNNING, 20 + UNSEEN_MS, False, JobStanding.WAITING),
        (RUNNING, 21, True, JobStanding.PAUSED),
        (FAILED, 21, False, JobStanding.FAILING),
        (JobState("g", running=False, since_ms=30, seen_ms=30, next_ms=99), 21, False, JobStanding.WAITING),
    ],
)
def test_what_a_job_does_now(state: JobState | None, now_ms: int, paused: bool, standing: JobStanding) -> None:
    job = StandingJob("in", ("replica", "run"), None, paused, created_ms=5)
    assert StandingJobInfo.of(StoredJob(job, state), now_ms).state is standing


def test_a_stored_report_that_is_none_is_shown_as_none() -> None:
    no_number = ('{"n": NaN}', '{"n": -Infinity}', '{"n": 1e999}')
    for text, report in (("{}", {}), *((text, None) for text in ("[]", "{", "[" * 9999, *no_number))):
        state = JobState("g", running=True, since_ms=1, seen_ms=1, report=text)
        assert StandingJobInfo.of(StoredJob(JOB, state), 1).report == report


def test_what_is_no_text_is_listed_over_http_as_it_is(tmp_path: Path) -> None:
    lake = lithify.open(str(tmp_path / "lake"))
    lake.create_topic("orders")
    words = ["hydrate", "orders", "--to", "a\udcff.db"]  # as the program gets the name of a file in Latin-1
    lake.standing_jobs().add("table", words, every_ms=60_000)
    jobs = open_standing_jobs(*shared_place(lake.warehouse, None))
    (stored,) = jobs.jobs()
    jobs.note([(stored.job, replace(RUNNING, report='{"text": "\\ud800"}'))])
    with serving_gateway(lake) as url:
        (info,) = requests.get(f"{url}/api/v1/standing-jobs", timeout=30).json()["items"]
    assert (info["arguments"], info["report"]) == (words, {"text": "\ud800"})


def test_the_python_api(tmp_path: Path) -> None:
    lake: Lake = lithify.open(str(tmp_path / "lake"))
    lake.create_topic("orders")
    jobs = lake.standing_jobs()
    assert jobs.list() == ()
    info = jobs.add("table", ["hydrate", "orders", "--to", "a b.db"], every_ms=60_000)
    assert (info.command, info.state, info.gateway) == ("hydrate orders --to 'a b.db'", "waiting", None)
    assert jobs.list() == (info,)
    assert jobs.pause("table").state == "paused"
    assert jobs.resume("table") == info
    with pytest.raises(RefusedError, match="already"):
        jobs.add("table", ["replica", "run"])
    with pytest.raises(RefusedError, match="table"):
        jobs.pause("tabel")
    assert jobs.remove("table") == info
    with pytest.raises(RefusedError):
        jobs.remove("table")
