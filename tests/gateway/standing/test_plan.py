"""Which jobs a gateway takes, starts and stops, and when again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.gateway.standing.plan import (
    LEAST_DELAY_MS,
    LOST,
    MOST_DELAY_MS,
    STEADY_MS,
    Sight,
    claims,
    delay_ms,
    due_in_ms,
    failures_after,
    plan,
)
from lithify.model.jobs.definition import JobState, StandingJob

ENDLESS = StandingJob("in", ("kafka", "ingest", "--continuous"), None, paused=False, created_ms=1)
NIGHTLY = StandingJob("rounds", ("pulsar", "compact", "t"), 3_600_000, paused=False, created_ms=1)
DONE = JobState("g", running=False, since_ms=1_000, seen_ms=1_000, next_ms=61_000)


@pytest.mark.parametrize(
    ("now", "held", "ending", "why"),
    [
        (ENDLESS, True, False, None),
        (replace(ENDLESS, paused=True), True, False, "it was paused"),
        (None, True, False, "it was removed"),
        (replace(ENDLESS, created_ms=2), True, False, "it was replaced"),
        (replace(ENDLESS, arguments=("hydrate",)), True, False, "it was replaced"),
        (replace(ENDLESS, every_ms=5), True, False, "it was replaced"),
        (ENDLESS, True, True, "the gateway stops"),
        (ENDLESS, False, False, LOST),
        (None, False, True, LOST),
    ],
)
def test_a_running_job_goes_on_or_ends(now: StandingJob | None, held: bool, ending: bool, why: str | None) -> None:
    jobs = {} if now is None else {"in": now}
    todo = plan(jobs, {"in"}, {"in": ENDLESS}, {"in"} if held else set(), ending=ending)
    assert (todo.start, todo.drop, todo.stop) == ((), (), {} if why is None else {"in": why})


@pytest.mark.parametrize(
    ("now", "held", "ending", "starts"),
    [
        (ENDLESS, True, False, True),
        (replace(ENDLESS, paused=True), True, False, False),
        (None, True, False, False),
        (ENDLESS, False, False, False),
        (ENDLESS, True, True, False),
    ],
)
def test_a_taken_job_is_started_or_dropped(now: StandingJob | None, held: bool, ending: bool, starts: bool) -> None:
    todo = plan({} if now is None else {"in": now}, {"in"}, {}, {"in"} if held else set(), ending=ending)
    assert (todo.start, todo.drop) == ((("in",), ()) if starts else ((), ("in",)))


@given(st.integers(0, 40), st.integers(1, 6))
def test_gateways_that_begin_together_take_all_jobs_in_equal_shares(number: int, gateways: int) -> None:
    free = dict.fromkeys(map(str, range(number)), 0)
    here: dict[str, set[str]] = {f"g{n}": set() for n in range(gateways)}
    for _ in range(number + 1):  # beats, one gateway after the other
        for gateway, own in here.items():
            elsewhere = sum(map(len, here.values())) - len(own)
            taken = claims(Sight(free, len(own), elsewhere, gateways), gateway, patience_ms=1)
            own.update(taken)
            free = {name: 0 for name in free if name not in taken}
    assert free == {}
    assert max(map(len, here.values())) <= -(-number // gateways)


def test_a_job_that_nobody_takes_for_long_is_taken_above_the_share() -> None:
    sight = Sight({"a": 30_000, "b": 29_999}, here=2, elsewhere=0, gateways=2)
    assert claims(sight, "g", patience_ms=30_000) == ("a",)


@pytest.mark.parametrize(
    ("job", "before", "code", "lasted_ms", "failures"),
    [
        (NIGHTLY, 3, 0, 10, 0),
        (NIGHTLY, 3, 1, 10, 4),
        (NIGHTLY, 3, 1, STEADY_MS, 1),
        (ENDLESS, 0, 0, 10, 1),
        (ENDLESS, 5, 137, STEADY_MS, 1),
    ],
)
def test_a_run_fails_by_its_code_or_by_ending(
    job: StandingJob, before: int, code: int, lasted_ms: int, failures: int
) -> None:
    assert failures_after(job, before, code, lasted_ms) == failures


@given(st.integers(0, 10_000))
def test_delays_grow_and_are_bounded(failures: int) -> None:
    assert LEAST_DELAY_MS <= delay_ms(ENDLESS, failures) <= delay_ms(ENDLESS, failures + 1) <= MOST_DELAY_MS
    assert delay_ms(NIGHTLY, 0) == NIGHTLY.every_ms
    assert delay_ms(replace(NIGHTLY, every_ms=1_000), failures) == 1_000


@pytest.mark.parametrize(
    ("state", "now_ms", "due_ms"),
    [
        (None, 0, 0),
        (replace(DONE, running=True), 0, 0),
        (replace(DONE, next_ms=None), 0, 0),
        (DONE, 1_000, 60_000),
        (DONE, 61_000, 0),
        (DONE, 10**15, 0),
        (DONE, -(10**15), 3_600_000),
    ],
)
def test_a_clock_that_jumps_delays_a_run_by_no_more_than_its_interval(
    state: JobState | None, now_ms: int, due_ms: int
) -> None:
    assert due_in_ms(NIGHTLY, state, now_ms) == due_ms
