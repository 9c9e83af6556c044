"""Jobs: their states, what they tell, and how many there can be."""

from threading import Event

import pytest

from gateway.conftest import ENOUGH_S
from lithify.errors import DamagedError, RoundAbandonedError, RoundsFailedError
from lithify.gateway.server.jobs.jobs import EVENTS_KEPT, KEPT, QUEUED_AT_MOST, Job, Jobs, JobState
from lithify.reports.report import Report
from lithify.testing import FakeClock


@pytest.fixture
def jobs():
    made = Jobs(FakeClock(), 1)
    yield made
    made.close()


def ended(jobs: Jobs, job: Job) -> Job:
    """After all that was queued before it, as there is one thread."""
    done = Event()
    assert jobs.begin("last", None, "", lambda _job: done.set()) is not None
    assert done.wait(ENOUGH_S)
    return job


def test_a_job_keeps_the_report_of_its_work(jobs):
    job = ended(jobs, jobs.begin("compact", "orders", "me", lambda _job: {"version": 7}))
    told = job.to_json()
    assert (told["state"], told["report"], told["error"], told["who"]) == ("done", {"version": 7}, None, "me")
    assert told["ended_ms"] is not None


def test_a_job_keeps_the_error_of_its_work(jobs):
    def fails(_job):
        raise DamagedError("orders-0: gone", hint="look")

    job = ended(jobs, jobs.begin("compact", "orders", "", fails))
    assert job.state is JobState.FAILED
    assert job.error == {"code": "Damaged", "message": "orders-0: gone", "hint": "look", "exit_code": 1}


def test_a_defect_is_an_error_as_well(jobs):
    job = ended(jobs, jobs.begin("compact", None, "", lambda _job: 1 / 0))
    assert (job.state, job.error["code"]) == (JobState.FAILED, "Defect")


def test_a_cancelled_round_has_its_report_and_is_cancelled(jobs):
    """A round of several logs says which of them were left: with that it is not one that failed."""
    reached, cancelled = Event(), Event()

    def work(job):
        reached.set()
        assert cancelled.wait(ENOUGH_S)
        error = RoundsFailedError("the job was cancelled")
        error.report = Report()
        raise error

    job = jobs.begin("compact", None, "", work)
    assert reached.wait(ENOUGH_S)
    jobs.cancel(job)
    cancelled.set()
    assert (ended(jobs, job).state, job.error["code"]) == (JobState.CANCELLED, "RoundsFailed")


def test_a_cancelled_job_ends_at_its_next_progress(jobs):
    reached, cancelled = Event(), Event()

    def work(job):
        reached.set()
        assert cancelled.wait(ENOUGH_S)
        job.progress("rewrite", 1, 2)

    job = jobs.begin("compact", None, "", work)
    assert reached.wait(ENOUGH_S)
    jobs.cancel(job)
    cancelled.set()
    assert ended(jobs, job).state is JobState.CANCELLED
    assert job.error["code"] == RoundAbandonedError("").code


def test_a_job_that_is_cancelled_while_it_waits_does_not_run(jobs):
    go_on, ran = Event(), []
    jobs.begin("first", None, "", lambda _job: go_on.wait(ENOUGH_S))
    job = jobs.begin("second", None, "", lambda _job: ran.append(1))
    jobs.cancel(job)
    go_on.set()
    assert ended(jobs, job).state is JobState.CANCELLED
    assert ran == []


def test_progress_that_repeats_itself_is_one_event(jobs):
    def work(job):
        for done in (0, 0, 1, 1, 1):
            job.progress("rewrite", done, 1)

    job = ended(jobs, jobs.begin("compact", None, "", work))
    assert [event["done"] for _, event in job.since(0)] == [0, 1]
    assert job.to_json()["progress"] == {"phase": "rewrite", "done": 1, "total": 1}


def test_events_jobs_and_those_that_wait_are_bounded(jobs):
    def work(job):
        for number in range(2 * EVENTS_KEPT):
            job.tell("note", text=str(number))

    job = ended(jobs, jobs.begin("compact", None, "", work))
    assert [number for number, _ in job.since(0)] == [*range(EVENTS_KEPT + 1, 2 * EVENTS_KEPT + 1)]
    for _ in range(KEPT + 20):
        while (last := jobs.begin("quick", None, "", lambda _job: None)) is None:
            pass
    ended(jobs, last)
    assert len(jobs.all()) <= KEPT + QUEUED_AT_MOST
    go_on = Event()
    begun = [jobs.begin("waits", None, "", lambda _job: go_on.wait(ENOUGH_S)) for _ in range(QUEUED_AT_MOST + 5)]
    assert begun[-1] is None
    go_on.set()
