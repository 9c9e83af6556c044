"""Expires kept versions after `versions.retention.ms` (C6, C7), in a commit of its own that changes no log.

    kept     14   19   22   27   30      closed longer than versions.retention.ms ago: 14, 19, 22
    after                   27   30      `sweep` may delete the files that only the others named

Without this commit only the rounds of later versions would expire them, and an idle topic has none. Cleaners make it,
and `sweep --yes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.names import TopicName
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.report import Report
from lithify.rules.lifecycle.expiring import expiry_ms, unexpired
from lithify.service.clock_check import check_clock
from lithify.service.commit import commit


@dataclass(frozen=True, slots=True)
class ExpireReport(Report):
    """The versions that expired. The field names are the JSON keys."""

    topic: str
    version: int
    """The newest version, since which they are no longer kept."""
    expired: tuple[int, ...]
    """The versions that expired, newest first."""
    now_ms: int


def versions_to_expire(warehouse: Warehouse, state: TopicState, now_ms: int) -> tuple[int, ...]:
    """The versions that `expire_versions` would expire, newest first. Raises what reading them raises."""
    kept = warehouse.store.versions(state.name)
    going = kept[len(unexpired(kept, expiry_ms(state.settings, now_ms))) :]
    return tuple(version.version for version in going)


def expire_versions(warehouse: Warehouse, name: TopicName, *, now_ms: int | None = None) -> ExpireReport | None:
    """Expires every version that was closed `versions.retention.ms` before `now_ms` or the clock.

    None if there is none. Raises `ClockError`, `UnknownTopicError`, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    judged_ms = warehouse.clock.now_ms() if now_ms is None else now_ms
    expired: dict[int, None] = {}

    def decide(newest: TopicState) -> TopicEdit | None:
        going = versions_to_expire(warehouse, newest, judged_ms)
        # If an attempt landed and its answer was lost, the next one no longer lists its versions: count both.
        expired.update(dict.fromkeys(going))
        if not going:
            return None
        if now_ms is None:
            check_clock(warehouse.clock, newest, judged_ms)
        before_ms = expiry_ms(newest.settings, judged_ms)
        return TopicEdit(run_id, warehouse.clock.now_ms(), {}, verb=Verb.EXPIRE, expire_closed_before_ms=before_ms)

    state = commit(warehouse, name, run_id, decide)
    if not expired:
        return None
    return ExpireReport(str(name), state.version, tuple(sorted(expired, reverse=True)), judged_ms)
