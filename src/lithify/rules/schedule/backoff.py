"""When a log that failed is tried again, and when no more (C31).

    failure      1     2     3     4      5      6      7     8
    tried after  15 s  30 s  1 min 2 min  4 min  8 min  16 min  quarantined

An error of the environment is not the log's, such as a store or catalog that cannot be reached, a full
disk, or a Spark that does not start. It is not counted as long as no other log succeeds with the same
means: an outage would quarantine every log of a catalog. It waits twice as long each time as well, but
never for long, so that work continues soon after the outage.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.errors import LithifyError
from lithify.model.failure import LogFailure

FIRST_BACKOFF_MS = 15_000
LONGEST_BACKOFF_MS = 30 * 60_000
LONGEST_OUTAGE_BACKOFF_MS = 2 * 60_000
FAILURES_ALLOWED = 7
"""Failures in a row after which a log is tried again; with the next it is quarantined."""

ALONE_AFTER = 2
"""Failures after which a log is tried alone, so that it fails no other."""

ERROR_CHARACTERS = 1_000
"""What is kept of an error's text."""


def after_failure(before: LogFailure | None, error: LithifyError, now_ms: int, *, counts: bool) -> LogFailure:
    """What is known of a log once it has failed (again).

    `counts` is False for an error that is not the log's own.
    """
    text = str(error)[:ERROR_CHARACTERS]
    if before is None:
        before = LogFailure(0, now_ms, now_ms, now_ms, text)
    if counts or before.failures == 0:
        failures = before.failures + 1
        backoff_ms = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** min(failures - 1, FAILURES_ALLOWED))
    else:
        failures = before.failures
        backoff_ms = min(LONGEST_OUTAGE_BACKOFF_MS, 2 * (before.retry_ms - before.last_ms))
    return replace(
        before,
        failures=failures,
        last_ms=now_ms,
        retry_ms=now_ms + backoff_ms,
        error=text,
        error_code=error.code,
        quarantined=failures > FAILURES_ALLOWED,
    )


def may_run(failure: LogFailure | None, now_ms: int) -> bool:
    """Whether a log may be tried now. A clock that went back far does not prolong the wait."""
    if failure is None:
        return True
    if failure.quarantined:
        return False
    return not failure.last_ms <= now_ms < failure.retry_ms
