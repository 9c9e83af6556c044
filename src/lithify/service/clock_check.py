"""Refuses to drop anything by a clock that is far from the topic's commits, until a person confirms it (C46)."""

from __future__ import annotations

from lithify.errors import ClockError
from lithify.model.names import TopicName
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.clock import Clock
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.clocks import clock_fault, without_times_to_come
from lithify.service.commit import commit


def check_clock(clock: Clock, state: TopicState, judged_ms: int) -> None:
    """Raises `ClockError` where nothing of the topic may be dropped by a clock that read `judged_ms`.

    A run that read the clock a day ago and stalled since is not refused: an early time only drops less.
    """
    fault = clock_fault(state, max(judged_ms, clock.now_ms()))
    if fault is not None:
        raise ClockError(
            f"{state.name}: {fault}: nothing was dropped",
            hint="set the clock of this machine; where it is right, --allow-clock-jump says so, once for the topic",
        )


def trust_clock(warehouse: Warehouse, name: TopicName) -> None:
    """Makes the clock's time the trusted one, whatever the times of commits before: those that are later become it.

    Raises what `commit` raises.
    """
    run_id = warehouse.clock.new_id()

    def decide(newest: TopicState) -> TopicEdit | None:
        now_ms = warehouse.clock.now_ms()
        cut = {log.partition: without_times_to_come(log, now_ms) for log in newest.logs}
        logs = {partition: log for partition, log in cut.items() if log != newest.log(partition)}
        others = (newest.clock_ms or 0, *(version.closed_ms for version in warehouse.store.versions(name)))
        if clock_fault(newest, now_ms) is None and not logs and max(others) <= now_ms:
            return None
        return TopicEdit(run_id, now_ms, logs, verb=Verb.ALTER, clock_ms=now_ms, closed_by_ms=now_ms)

    commit(warehouse, name, run_id, decide)
