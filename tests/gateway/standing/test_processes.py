"""Standing jobs on real gateways: killed, frozen, two with one name, with jobs that misbehave."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from gateway.standing.gateways import LEASE_MS, ODD_JOB, WAIT_S, GatewayProcess, Journal, is_running, kill, waited
from lithify.api.wiring.system_clock import SystemClock
from lithify.coordination.leases.gateways.jobs_sql import SqlStandingJobs, open_standing_jobs
from lithify.daemons.stop import Stop
from lithify.gateway.standing.options import StandingOptions
from lithify.gateway.standing.standing_jobs import StandingJobs
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.jobs.definition import JobState, StandingJob
from support.processes.frozen import freeze as stop

pytestmark = [pytest.mark.kills, pytest.mark.timeout(300)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/leases.db"


@pytest.fixture
def jobs(url: str) -> SqlStandingJobs:
    return open_standing_jobs(url, None, WarehouseScope.of("lake"))


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def added(jobs: SqlStandingJobs, mode: str, journal: Journal, name: str = "job", every_ms: int | None = None) -> None:
    job = StandingJob(name, (mode, str(journal.path)), every_ms, paused=False, created_ms=SystemClock().now_ms())
    assert jobs.add(job)


def state_of(jobs: SqlStandingJobs, name: str = "job") -> JobState | None:
    return next((stored.state for stored in jobs.jobs() if stored.job.name == name), None)


def test_a_job_of_a_killed_gateway_is_taken_over_and_never_runs_twice(
    url: str, jobs: SqlStandingJobs, journal: Journal
) -> None:
    added(jobs, "works", journal)
    with GatewayProcess(url, "a") as first, GatewayProcess(url, "b") as second:
        waited(lambda: first.told("job-started") or second.told("job-started"))
        holder, other = (first, second) if first.told("job-started") else (second, first)
        waited(lambda: len(journal.times("alive")) > 10)
        holder.signal(signal.SIGKILL)
        killed = time.monotonic()
        other.wait_for("job-started")
        took_s = time.monotonic() - killed
        waited(lambda: len(journal.pids()) == 2)
        old, new = journal.pids()
        waited(lambda: is_running(new))
        assert not is_running(old)
        state = state_of(jobs)
        assert took_s < 3 * LEASE_MS / 1000 + 10, "a lease, and what a busy machine needs"
        waited(lambda: (state := state_of(jobs)) is not None and state.gateway == ("b" if holder is first else "a"))
        other.signal(signal.SIGTERM)
        assert other.ended() == 0
    assert state is not None
    waited(journal.is_silent)
    journal.check_alone()
    assert len(journal.times("term")) >= 1


def test_a_frozen_gateway_has_no_process_when_another_one_begins(
    url: str, jobs: SqlStandingJobs, journal: Journal
) -> None:
    added(jobs, "stubborn", journal)
    with GatewayProcess(url, "a") as frozen:
        frozen.wait_for("job-started")
        waited(lambda: journal.times("alive"))
        (old,) = journal.pids()
        with GatewayProcess(url, "b") as other:
            waited(lambda: leases_of(url, "gateway/") == 2)
            freeze(frozen, url)
            other.wait_for("job-started")
            assert not is_running(old)
            frozen.signal(signal.SIGCONT)
            stopped = frozen.wait_for("job-stopped")
            assert stopped["reason"] == "its lease is lost"
            waited(lambda: (state := state_of(jobs)) is not None and state.gateway == "b" and state.running)
    waited(journal.is_silent)
    journal.check_alone()


def freeze(gateway: GatewayProcess, url: str) -> None:
    stop(gateway.process, Path(url.removeprefix("sqlite:///")))  # type: ignore[arg-type]  # which reads no text of it


def leases_of(url: str, kind: str) -> int:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        try:
            names = connection.execute("SELECT name FROM lithify_standing_job_leases").fetchall()
        except sqlite3.OperationalError:
            return 0
    return sum(name.startswith(f"lake/{kind}") for (name,) in names)


@pytest.mark.parametrize("mode", ["works", "stubborn", "forks"])
def test_no_process_outlives_its_gateway(url: str, jobs: SqlStandingJobs, journal: Journal, mode: str) -> None:
    added(jobs, mode, journal)
    with GatewayProcess(url, lease_ms=60_000) as gateway:
        waited(lambda: len(journal.times("alive")) > 2)
        gateway.signal(signal.SIGKILL)
        gateway.ended()
        killed = time.monotonic()
        waited(journal.is_silent)
        assert time.monotonic() - killed < 30, "and not at the end of its lease"


def test_what_a_job_leaves_behind_ends_before_it_runs_again(url: str, jobs: SqlStandingJobs, journal: Journal) -> None:
    added(jobs, "forks", journal)
    with GatewayProcess(url) as gateway:
        ended = gateway.wait_for("job-ended", times=2)
        assert (ended["exit_code"], ended["failures"]) == (1, 2)
        gateway.signal(signal.SIGTERM)
        gateway.ended()
    waited(journal.is_silent)
    journal.check_alone()


def test_a_guard_that_is_killed_takes_its_job_along(url: str, jobs: SqlStandingJobs, journal: Journal) -> None:
    added(jobs, "stubborn", journal)
    with GatewayProcess(url) as gateway:
        waited(lambda: journal.times("alive"))
        (pid,) = journal.pids()
        kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1]))
        assert gateway.wait_for("job-ended")["exit_code"] == 128 + signal.SIGKILL
        waited(lambda: not is_running(pid))
        gateway.wait_for("job-started", times=2)
    waited(journal.is_silent)
    journal.check_alone()


@pytest.mark.parametrize("how", ["pause", "remove", "replace"])
def test_a_job_that_is_paused_removed_or_replaced_ends(
    url: str, jobs: SqlStandingJobs, journal: Journal, tmp_path: Path, how: str
) -> None:
    added(jobs, "works", journal)
    later = Journal(tmp_path / "later")
    with GatewayProcess(url) as gateway:
        waited(lambda: journal.times("alive"))
        if how == "pause":
            jobs.pause("job", paused=True)
        else:
            jobs.remove("job")
        if how == "replace":
            added(jobs, "works", later)
        stopped = gateway.wait_for("job-stopped")
        assert stopped["exit_code"] == 0
        assert stopped["reason"] == {"pause": "it was paused", "remove": "it was removed"}.get(how, "it was replaced")
        assert journal.is_silent()
        if how == "pause":
            waited(lambda: (state := state_of(jobs)) is not None and not state.running)
            jobs.pause("job", paused=False)
            waited(lambda: len(journal.pids()) == 2)
        elif how == "replace":
            waited(lambda: later.times("alive"))
            waited(lambda: state_of(jobs) is not None)
        else:
            waited(lambda: leases_of(url, "job/") == 0)
            assert jobs.jobs() == ()
        gateway.signal(signal.SIGTERM)
        assert gateway.ended() == 0
    journal.check_alone()


def test_a_job_that_does_not_end_is_killed(url: str, jobs: SqlStandingJobs, journal: Journal) -> None:
    added(jobs, "stubborn", journal)
    with GatewayProcess(url) as gateway:
        waited(lambda: journal.times("alive"))
        jobs.pause("job", paused=True)
        assert gateway.wait_for("job-stopped")["exit_code"] == 128 + signal.SIGKILL
    assert len(journal.times("term")) == 1
    assert journal.is_silent()


def test_a_gateway_that_stops_ends_even_stubborn_jobs_in_time(
    url: str, jobs: SqlStandingJobs, journal: Journal
) -> None:
    added(jobs, "stubborn", journal)
    with GatewayProcess(url, lease_ms=30_000) as gateway:
        waited(lambda: journal.times("alive"))
        begun = time.monotonic()
        gateway.signal(signal.SIGTERM)
        assert gateway.ended() == 0
        assert time.monotonic() - begun < 10 + 5
        assert journal.is_silent()
    assert leases_of(url, "") == 0, "so that the next gateway need not wait"
    state = state_of(jobs)
    assert state is not None and not state.running and state.next_ms is None


def test_a_job_that_prints_garbage_without_end_is_only_that(
    url: str, jobs: SqlStandingJobs, journal: Journal, tmp_path: Path
) -> None:
    added(jobs, "garbage", journal)
    other = Journal(tmp_path / "other")
    added(jobs, "works", other, name="other")
    with GatewayProcess(url) as gateway:
        waited(lambda: len(other.times("alive")) > 50)
        (pid,) = journal.pids()
        assert is_running(pid)
        assert resident_bytes(gateway.process.pid) < 300 << 20
        gateway.signal(signal.SIGTERM)
        assert gateway.ended() == 0
    state = state_of(jobs)
    assert state is not None and state.error is None
    assert state.report is None or state.report == '{"rows": 7}'


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


REPORT = '{"topic": "orders", "records": 3}'


def test_runs_are_noted_without_secrets_and_repeated(
    url: str, jobs: SqlStandingJobs, journal: Journal, tmp_path: Path
) -> None:
    added(jobs, "fails", journal, name="bad")
    added(jobs, "reports", Journal(tmp_path / "good"), name="good", every_ms=1_000)
    with GatewayProcess(url, "night") as gateway:
        waited(lambda: len(gateway.told("job-ended", "good")) >= 2 and len(gateway.told("job-ended", "bad")) >= 2)
        bad, good = gateway.told("job-ended", "bad"), gateway.told("job-ended", "good")
        waited(lambda: (state := state_of(jobs, "good")) is not None and state.report == REPORT)
        gateway.signal(signal.SIGTERM)
        gateway.ended()
    assert [event["failures"] for event in bad[:2]] == [1, 2]
    assert [event["failures"] for event in good] == [0] * len(good)  # those until the gateway was stopped
    state = state_of(jobs, "bad")
    assert state is not None and (state.gateway, state.exit_code, state.error_code) == ("night", 1, "Broker")
    assert state.error == "no answer from kafka://me:***@broker"
    assert "s3cret" not in repr(gateway.events)


def test_a_job_waits_for_its_interval_on_whichever_gateway(
    url: str, jobs: SqlStandingJobs, journal: Journal, tmp_path: Path
) -> None:
    """The end of a run is noted before the job is free: who finds it free knows when it is due."""
    added(jobs, "reports", journal, name="hourly", every_ms=3_600_000)
    added(jobs, "reports", Journal(tmp_path / "often"), name="often", every_ms=1_000)
    with GatewayProcess(url, "first") as first, GatewayProcess(url, "second") as second:
        waited(lambda: sum(len(one.told("job-ended", "often")) for one in (first, second)) >= 6)
        started = [event for one in (first, second) for event in one.told("job-started", "hourly")]
    assert len(started) == 1


def test_two_gateways_of_one_name_share_the_jobs(url: str, jobs: SqlStandingJobs, tmp_path: Path) -> None:
    journals = [Journal(tmp_path / f"journal{number}") for number in range(4)]
    for number, journal in enumerate(journals):
        added(jobs, "works", journal, name=f"job{number}")
    with GatewayProcess(url, "same") as first, GatewayProcess(url, "same") as second:
        waited(lambda: all(journal.times("alive") for journal in journals))
        started = [{event["job"] for event in gateway.told("job-started")} for gateway in (first, second)]
        # two each, unless one of them came so late that the other was alone; `test_plan` holds the shares
        assert sorted(name for names in started for name in names) == [f"job{number}" for number in range(4)]
        first.signal(signal.SIGTERM)
        assert first.ended() == 0
        waited(lambda: len(second.told("job-started")) == 4)
        second.signal(signal.SIGTERM)
        assert second.ended() == 0
    for journal in journals:
        journal.check_alone()


def test_a_database_that_is_away_for_longer_than_a_lease(
    url: str, jobs: SqlStandingJobs, journal: Journal, tmp_path: Path
) -> None:
    added(jobs, "works", journal)
    database, away = tmp_path / "leases.db", tmp_path / "away.db"
    with GatewayProcess(url) as gateway:
        waited(lambda: journal.times("alive"))
        shutil.move(database, away)
        database.mkdir()  # which cannot be opened
        gateway.wait_for("trouble")
        assert gateway.wait_for("job-stopped")["reason"] == "its lease is lost"
        assert journal.is_silent()
        database.rmdir()
        shutil.move(away, database)
        gateway.wait_for("recovered")
        gateway.wait_for("job-started", times=2)
        gateway.signal(signal.SIGTERM)
        assert gateway.ended() == 0
    journal.check_alone()


def test_a_database_that_is_made_anew(url: str, jobs: SqlStandingJobs, journal: Journal, tmp_path: Path) -> None:
    added(jobs, "works", journal)
    with GatewayProcess(url) as gateway:
        waited(lambda: journal.times("alive"))
        (tmp_path / "leases.db").unlink()
        gateway.wait_for("job-stopped")
        (tmp_path / "leases.db").touch()  # a process that starts makes it, one that runs takes it for lost
        added(jobs, "works", journal)
        gateway.wait_for("recovered")
        gateway.wait_for("job-started", times=2)
    waited(journal.is_silent)
    journal.check_alone()


def test_a_gateway_whose_events_nobody_reads_leaves_its_jobs_to_others(
    url: str, jobs: SqlStandingJobs, journal: Journal
) -> None:
    """As on a terminal after Ctrl-S: the thread that prints hangs, and tells no process how long it may run."""
    added(jobs, "works", journal)
    printed, stop = Event(), Stop()
    options = StandingOptions("a", lease_ms=LEASE_MS, program=(sys.executable, ODD_JOB))
    hangs = StandingJobs(jobs, SystemClock(), options, stop, lambda _event: printed.wait(WAIT_S))
    hangs.start()
    try:
        waited(lambda: journal.times("alive"))
        with GatewayProcess(url, "b") as other:
            other.wait_for("job-started")
            waited(lambda: len(journal.pids()) == 2)
    finally:
        printed.set()
        hangs.close()
    waited(journal.is_silent)
    journal.check_alone()


def test_a_gateway_whose_events_nobody_reads_ends_its_jobs_in_order(
    url: str, jobs: SqlStandingJobs, journal: Journal
) -> None:
    added(jobs, "works", journal)
    printed = Event()
    options = StandingOptions("a", lease_ms=600_000, program=(sys.executable, ODD_JOB))
    hangs = StandingJobs(jobs, SystemClock(), options, Stop(), lambda _event: printed.wait(WAIT_S))
    hangs.start()
    try:
        waited(lambda: journal.times("alive"))
        hangs.close()
        assert journal.is_silent()
        assert len(journal.times("term")) == 1
    finally:
        printed.set()
        waited(lambda: hangs.step() and not hangs.running())


def test_a_gateway_that_is_started_by_one_who_ignores_ends_of_children_knows_how_jobs_end(
    url: str, jobs: SqlStandingJobs, journal: Journal
) -> None:
    added(jobs, "fails", journal)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        gateway = GatewayProcess(url)
    finally:
        signal.signal(signal.SIGCHLD, before)
    with gateway:
        assert gateway.wait_for("job-ended", times=2)["exit_code"] == 1


def test_a_program_that_cannot_be_started_is_tried_again(url: str, jobs: SqlStandingJobs, journal: Journal) -> None:
    added(jobs, "works", journal)
    with GatewayProcess(url, "g", "/none/such.py") as gateway:
        assert gateway.wait_for("job-ended", times=2)["failures"] == 2


def test_many_jobs_end_with_their_gateway(url: str, jobs: SqlStandingJobs, tmp_path: Path) -> None:
    journals: Sequence[Journal] = [Journal(tmp_path / f"journal{number}") for number in range(12)]
    for number, journal in enumerate(journals):
        added(jobs, "works", journal, name=f"job{number}")
    with GatewayProcess(url) as gateway:
        waited(lambda: all(journal.times("alive") for journal in journals))
        gateway.signal(signal.SIGTERM)
        assert gateway.ended() == 0
        assert all(journal.is_silent() for journal in journals)
