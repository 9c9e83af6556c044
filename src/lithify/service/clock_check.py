"""Refuses to drop anything by a clock that is far from the topic's commits, until a person confirms it (C46)."""

from __future__ import annotations

from lithify.errors import ClockError
from lithify.model.names import TopicName
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.clock import Clock
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.clocks import clock_fault, logs_without_times_to_come
from lithify.rules.lifecycle.replicas import check_done_to
from lithify.service.commit import commit

_AT_REPLICA = "at its source first, then here with `sweep`"


def check_clock(clock: Clock, state: TopicState, judged_ms: int) -> None:
    """Raises `ClockError` if nothing of the topic may be dropped by a clock that read `judged_ms`.

    A run that read the clock a day ago and stalled since is not refused: an early time only drops less.
    """
    fault = clock_fault(state, max(judged_ms, clock.now_ms()))
    if fault is not None:
        once = "once for the topic" if state.replica is None else _AT_REPLICA
        raise ClockError(
            f"{state.name}: {fault}: nothing was dropped",
            hint=f"set the clock of this machine; if it is right, add --allow-clock-jump, {once}",
        )


def trust_clock(warehouse: Warehouse, name: TopicName, verb: Verb = Verb.TRUST_CLOCK) -> None:
    """Makes the clock's time the trusted one, whatever the times of commits before: those that are later become it.

    `verb` is what is to be done by that clock. Raises `PolicyError` where it is not done to the topic (C64), or what
    `commit` raises.
    """
    run_id = warehouse.clock.new_id()

    def decide(newest: TopicState) -> TopicEdit | None:
        check_done_to(newest, verb)
        now_ms = warehouse.clock.now_ms()
        logs = logs_without_times_to_come(newest, now_ms)
        others = (newest.clock_ms or 0, *(version.closed_ms for version in warehouse.store.versions(name)))
        if clock_fault(newest, now_ms) is None and not logs and max(others) <= now_ms:
            return None
        return TopicEdit(run_id, now_ms, logs, verb=Verb.TRUST_CLOCK, clock_ms=now_ms, closed_by_ms=now_ms)

    commit(warehouse, name, run_id, decide)
