"""Jobs: their states, what they tell, and how many there can be."""

from threading import Event

import pytest

from gateway.conftest import ENOUGH_S
from lithify.errors import DamagedError, RoundAbandonedError
from lithify.gateway.server.jobs.jobs import EVENTS_KEPT, KEPT, QUEUED_AT_MOST, Job, Jobs, JobState
from lithify.reports.rounds.round import LogReport, RoundReport
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


@pytest.mark.parametrize(
    ("failed_with", "state", "code"),
    [
        ("RoundAbandoned RoundAbandoned", JobState.CANCELLED, "RoundAbandoned"),
        ("RoundAbandoned Damaged", JobState.FAILED, "RoundsFailed"),
    ],
)
def test_a_cancelled_round_has_its_report_and_is_cancelled_unless_a_log_had_failed(jobs, failed_with, state, code):
    logs = tuple(LogReport(n, 0, 0, 0, "", error="x", error_code=one) for n, one in enumerate(failed_with.split()))
    report = RoundReport("orders", 1, changed=False, logs=logs, duration_ms=1, now_ms=1)
    reached, cancelled = Event(), Event()

    def work(job):
        reached.set()
        assert cancelled.wait(ENOUGH_S)
        report.unless_all_failed()

    job = jobs.begin("compact", None, "", work)
    assert reached.wait(ENOUGH_S)
    jobs.cancel(job)
    cancelled.set()
    assert (ended(jobs, job).state, job.error["code"]) == (state, code)
    assert job.error["hint"] == "the logs are unchanged"
    assert (job.error["message"] == "the job was cancelled") == (state is JobState.CANCELLED)
    assert job.to_json()["report"] == report.to_json()


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


def test_progress_that_repeats_itself_is_one_event_and_of_a_job_that_runs(jobs):
    seen = []

    def work(job):
        for done in (0, 0, 1, 1, 1):
            job.progress("rewrite", done, 1)
        seen.append(job.to_json()["progress"])

    job = ended(jobs, jobs.begin("compact", None, "", work))
    assert [event["done"] for _, event in job.since(0)] == [0, 1]
    assert seen == [{"phase": "rewrite", "done": 1, "total": 1}]
    assert job.to_json()["progress"] is None


def test_nobody_sees_half_of_an_end(jobs):
    seen = []
    job = jobs.begin(
        "compact", None, "", lambda _job: {"version": 7}, lambda job, state: seen.append((job.to_json(), state))
    )
    ended(jobs, job)
    ((before, state),) = seen
    assert (before["state"], before["ended_ms"], before["report"], state) == ("running", None, None, JobState.DONE)


def test_jobs_that_wait_when_the_gateway_ends_are_cancelled():
    jobs, states, go_on, all_ended = Jobs(FakeClock(), 1), [], Event(), Event()

    def at_end(_job, state):
        states.append(state)
        if len(states) == 3:
            all_ended.set()

    begun = Event()
    jobs.begin("first", None, "", lambda _job: begun.set() or go_on.wait(ENOUGH_S), at_end)
    for _ in range(2):
        jobs.begin("waits", None, "", lambda _job: None, at_end)
    assert begun.wait(ENOUGH_S)
    jobs.close()
    go_on.set()
    assert all_ended.wait(ENOUGH_S)
    assert states == [JobState.DONE, JobState.CANCELLED, JobState.CANCELLED]


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
