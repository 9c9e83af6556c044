"""Expires retained versions after `versions.retention.ms` (C6, C7), in a commit of its own that changes no log.

    kept     14   19   22   27   30      closed longer than versions.retention.ms ago: 14, 19, 22
    after                   27   30      `sweep` may delete the files that only the others named

Without this commit only the rounds of later versions would expire them, and an idle topic has none. Cleaners make it,
and `sweep --yes`. The time is what its stream says now, whether the topic was altered by it or not (C56).
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.names import TopicName
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.report import Report
from lithify.rules.lifecycle.expiring import expiry_ms, unexpired
from lithify.service.change.streams import as_inherited
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
    """The versions that `expire_versions` would expire, newest first. Raises what `_expiring` raises."""
    return _expiring(warehouse, state, now_ms)[1]


def expire_versions(warehouse: Warehouse, name: TopicName, *, now_ms: int | None = None) -> ExpireReport | None:
    """Expires every version that was closed `versions.retention.ms` before `now_ms` or the clock.

    None if there is none. Raises `ClockError`, `UnknownTopicError`, or what `as_inherited` and `commit` raise.
    """
    run_id = warehouse.clock.new_id()
    judged_ms = warehouse.clock.now_ms() if now_ms is None else now_ms
    expired: dict[int, None] = {}

    def decide(newest: TopicState) -> TopicEdit | None:
        before_ms, going = _expiring(warehouse, newest, judged_ms)
        # If an attempt landed and its answer was lost, the next one no longer lists its versions: count both.
        expired.update(dict.fromkeys(going))
        if not going:
            return None
        if now_ms is None:
            check_clock(warehouse.clock, newest, judged_ms)
        return TopicEdit(run_id, warehouse.clock.now_ms(), {}, verb=Verb.EXPIRE, expire_closed_before_ms=before_ms)

    state = commit(warehouse, name, run_id, decide)
    if not expired:
        return None
    return ExpireReport(str(name), state.version, tuple(sorted(expired, reverse=True)), judged_ms)


def next_expiry_ms(warehouse: Warehouse, name: TopicName) -> int | None:
    """When the first of the retained versions is past `versions.retention.ms`; None without one.

    Raises `UnknownTopicError` or what reading versions raises.
    """
    closed_ms = min((version.closed_ms for version in warehouse.store.versions(name)), default=None)
    return None if closed_ms is None else closed_ms + warehouse.store.load(name).settings.versions_retention_ms


def _expiring(warehouse: Warehouse, state: TopicState, now_ms: int) -> tuple[int, tuple[int, ...]]:
    """Before which time a version of `state` must have been closed to expire, and which do, newest first.

    Raises what reading them raises, or `as_inherited`, which reads what the stream says where one would expire.
    """
    kept = warehouse.store.versions(state.name)
    before_ms = expiry_ms(state.settings, now_ms)
    if len(unexpired(kept, before_ms)) < len(kept):
        before_ms = expiry_ms(as_inherited(warehouse, state).settings, now_ms)
    return before_ms, tuple(version.version for version in kept[len(unexpired(kept, before_ms)) :])
