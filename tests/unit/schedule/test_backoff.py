"""When a log that failed is tried again, and when no more (C31)."""

from __future__ import annotations

import pytest

from lithify.errors import DamagedError
from lithify.model.failure import LogFailure
from lithify.rules.schedule.backoff import (
    ERROR_CHARACTERS,
    FAILURES_ALLOWED,
    LONGEST_BACKOFF_MS,
    LONGEST_OUTAGE_BACKOFF_MS,
    after_failure,
    may_run,
)

NOW_MS = 1_000_000
MINUTE_MS = 60_000


def failing(times, *, counts=True, before=None, now_ms=NOW_MS):
    """What is known after so many failures, each as soon as it is tried again; and the waits in seconds."""
    waits = []
    for number in range(times):
        before = after_failure(before, DamagedError(f"error {number}"), now_ms, counts=counts)
        waits.append((before.retry_ms - now_ms) // 1000)
        now_ms = before.retry_ms
    return before, waits


def test_it_waits_twice_as_long_each_time_and_then_it_is_quarantined():
    failure, waits = failing(FAILURES_ALLOWED)
    assert waits == [15, 30, 60, 120, 240, 480, 960]
    assert not failure.quarantined
    failure, _ = failing(1, before=failure)
    assert (failure.failures, failure.quarantined) == (FAILURES_ALLOWED + 1, True)


def test_it_knows_the_first_and_the_last_time_and_the_last_error():
    first, _ = failing(1)
    assert first == LogFailure(1, NOW_MS, NOW_MS, NOW_MS + 15_000, "error 0", error_code="Damaged")
    third, _ = failing(3)
    assert (third.first_ms, third.last_ms, third.error) == (NOW_MS, NOW_MS + 45_000, "error 2")


def test_a_log_that_keeps_failing_waits_for_half_an_hour_at_most():
    _, waits = failing(100)
    assert max(waits) * 1000 == LONGEST_BACKOFF_MS == 30 * MINUTE_MS


def test_an_outage_is_not_counted_and_is_waited_for_a_short_time():
    failure, waits = failing(50, counts=False)
    assert (failure.failures, failure.quarantined) == (1, False)
    assert waits[:5] == [15, 30, 60, 120, 120]
    assert max(waits) * 1000 == LONGEST_OUTAGE_BACKOFF_MS


def test_an_outage_takes_nothing_back_of_what_was_counted():
    before, _ = failing(6)
    failure, waits = failing(1, counts=False, before=before)
    assert (failure.failures, failure.error, waits) == (6, "error 0", [120])
    quarantined, _ = failing(FAILURES_ALLOWED + 1)
    assert failing(1, counts=False, before=quarantined)[0].quarantined


def test_a_long_error_is_cut():
    assert len(after_failure(None, DamagedError("x" * 10_000), NOW_MS, counts=True).error) == ERROR_CHARACTERS


@pytest.mark.parametrize(
    ("now_ms", "expected"), [(NOW_MS, False), (NOW_MS + 14_999, False), (NOW_MS + 15_000, True), (NOW_MS - 1, True)]
)
def test_it_is_tried_when_its_time_has_come_or_the_clock_went_back(now_ms, expected):
    failure, _ = failing(1)
    assert may_run(failure, now_ms) is expected


def test_what_never_failed_may_run_and_what_is_quarantined_never():
    assert may_run(None, NOW_MS)
    failure, _ = failing(FAILURES_ALLOWED + 1)
    assert not any(may_run(failure, now_ms) for now_ms in (0, NOW_MS, failure.retry_ms, 2**60))
