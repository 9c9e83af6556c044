"""Which clock may do irreversible things (C46).

    commits   ●      ●   ●                                  a clock says
                         └──── trusted ────────────────────────┘         further ahead: a leap
                              as far as LEAP_MS and the longest wait

Rounds, retention and sweep drop data by a clock, and a clock that is years ahead would drop everything
at once. The topic's commits are the evidence: their clocks agree as long as none is far from the time of
the one before. An idle topic is not a leap: it may be without commits for as long as the longest time in its
settings, and `LEAP_MS` more. A commit by a clock that leaps does not count, so the clock remains refused until
`--allow-clock-jump` confirms it.

A clock that was ahead, but not that far, has stored times in the future: tombstones would remain until then, and later
ones as well, as the times of steps never go back. When the clock is confirmed, such times become its present time. What
they date had happened by then, so nothing is removed too early.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.settings.units import format_time
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState

LEAP_MS = 2 * 365 * 86_400_000
"""How long a topic may be without commits once nothing in it waits any more."""

BEHIND_MS = 86_400_000
"""How far a clock may be behind the clock of an earlier commit: clocks of several machines differ."""


def vouched_ms(state: TopicState, now_ms: int) -> int:
    """The latest trusted time of a topic's commits, with one that is made on `state` now."""
    known_ms = state.clock_ms
    if known_ms is None or known_ms <= now_ms <= known_ms + _longest_rest_ms(state.settings):
        return now_ms
    return known_ms


def clock_fault(state: TopicState, now_ms: int) -> str | None:
    """Why a clock that says `now_ms` must not drop anything; None if it may."""
    known_ms = state.clock_ms
    if known_ms is None:  # before the first commit, or in an earlier format
        return None
    if now_ms > known_ms + _longest_rest_ms(state.settings):
        return (
            f"the clock is at {format_time(now_ms)}, years after the last commit of the topic at "
            f"{format_time(known_ms)}"
        )
    if now_ms < known_ms - BEHIND_MS:
        return f"the clock is at {format_time(now_ms)}, before a commit of the topic at {format_time(known_ms)}"
    return None


def logs_without_times_to_come(state: TopicState, now_ms: int) -> dict[int, LogState]:
    """The logs of a topic that have stored times later than `now_ms`, without these.

    A replica that takes no rounds does not have such logs: its logs equal its source's, including times (C63).
    """
    if not state.takes_rounds:
        return {}
    cut = {log.partition: _without_times_to_come(log, now_ms) for log in state.logs}
    return {partition: log for partition, log in cut.items() if log != state.log(partition)}


def as_confirmed(log: LogState, then: TopicState, newest: TopicState) -> LogState:
    """A log of an earlier version, without the times to come that a confirmed clock has set back since.

    Nothing else sets the trusted time back. Once that is as late again, so is the clock, and they are not to come.
    """
    if newest.clock_ms is None or then.clock_ms is None or then.clock_ms <= newest.clock_ms:
        return log
    return _without_times_to_come(log, newest.clock_ms)


def _without_times_to_come(log: LogState, now_ms: int) -> LogState:
    """The log with every stored time of a commit that is later than `now_ms` set to that (C18, C14)."""
    return replace(
        log,
        steps=tuple(replace(step, time_ms=min(step.time_ms, now_ms)) for step in log.steps),
        committed=tuple(replace(end, time_ms=min(end.time_ms, now_ms)) for end in log.committed),
        last_round_ms=None if log.last_round_ms is None else min(log.last_round_ms, now_ms),
    )


def _longest_rest_ms(settings: TopicSettings) -> int:
    waits = (
        settings.retention_ms if settings.deletes else 0,
        settings.delete_retention_ms,
        settings.tombstone_hold_max_ms if settings.holding_groups else 0,
        settings.min_compaction_lag_ms,
        settings.max_compaction_lag_ms,
        settings.versions_retention_ms,
        settings.sweep_grace_ms,
    )
    return LEAP_MS + max(waits)
