"""Lists logs whose rounds fail, and releases them (C31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from lithify.errors import RefusedError
from lithify.model.failure import LogFailure
from lithify.model.names import LogId, TopicName
from lithify.ports.store import Warehouse
from lithify.reports.quarantine import (
    QuarantineReport,
    ReleaseReport,
    UnreadableTopic,
    failing_log,
    worst_first,
)
from lithify.service.documents import failures_of, put_failures
from lithify.service.look.status import read_topics

NAMED_AT_MOST = 20
"""Failing logs that a refusal names."""


def failing_logs(warehouse: Warehouse) -> QuarantineReport:
    """All logs of the catalog whose last round failed. Raises `WarehouseError` if the catalog cannot be read."""
    by_topic, errors = read_topics(warehouse.store, partial(failures_of, warehouse.store))
    logs = [
        failing_log(LogId(name, p), failure) for name, failures in by_topic.items() for p, failure in failures.items()
    ]
    unreadable = tuple(UnreadableTopic(str(name), str(error), error.code) for name, error in sorted(errors.items()))
    return QuarantineReport(worst_first(logs), unreadable, warehouse.clock.now_ms())


def release(warehouse: Warehouse, name: TopicName, partitions: Sequence[int] | None = None) -> ReleaseReport:
    """Removes the stored failures of these logs, or of all, so that cleaners try them at once.

    Raises `RefusedError` if one of them is not failing, and `UnknownTopicError`.
    """
    state = warehouse.store.load(name)
    for partition in partitions or ():
        state.check_partition(partition)
    # A read-modify-write: without the lock one of two at the same time would be overwritten.
    with warehouse.store.commit_lock(name):
        before = failures_of(warehouse.store, state)
        wanted = _wanted(name, partitions, before)
        left = {partition: failure for partition, failure in before.items() if partition not in wanted}
        put_failures(warehouse.store, state, left)
    return ReleaseReport(str(name), tuple(failing_log(LogId(name, p), before[p]) for p in wanted))


def _wanted(name: TopicName, partitions: Sequence[int] | None, failures: Mapping[int, LogFailure]) -> tuple[int, ...]:
    """The partitions to release. Raises `RefusedError`, which names the failing logs."""
    if not failures:
        raise RefusedError(
            f"{name}: it has no quarantined or failing logs",
            hint="list the failing logs of all topics with `lithify quarantine list`",
        )
    if partitions is None:
        return tuple(sorted(failures))
    others = [partition for partition in sorted(set(partitions)) if partition not in failures]
    if others:
        named = ", ".join(map(str, sorted(failures)[:NAMED_AT_MOST]))
        more = f" and {len(failures) - NAMED_AT_MOST} more" if len(failures) > NAMED_AT_MOST else ""
        raise RefusedError(
            f"{LogId(name, others[0])} is not quarantined or failing; nothing was released",
            hint=f"the failing logs of {name} are {named}{more}",
        )
    return tuple(sorted(set(partitions)))
