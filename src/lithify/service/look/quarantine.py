"""Lists logs whose rounds fail, and releases them (C31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lithify.defects import as_lithify_error
from lithify.errors import RefusedError, UnknownTopicError
from lithify.model.failure import LogFailure
from lithify.model.names import LogId, TopicName
from lithify.ports.store import Warehouse
from lithify.reports.quarantine import (
    FailingLog,
    QuarantineReport,
    ReleaseReport,
    UnreadableTopic,
    failing_log,
    worst_first,
)
from lithify.service.documents import failures_of, put_failures

NAMED_AT_MOST = 20
"""Failing logs that a refusal names."""


def failing_logs(warehouse: Warehouse) -> QuarantineReport:
    """All logs of the catalog whose last round failed. Raises `WarehouseError` if the catalog cannot be read."""
    logs: list[FailingLog] = []
    unreadable: list[UnreadableTopic] = []
    for name, _ in warehouse.store.change_tokens():
        try:
            failures = failures_of(warehouse.store, warehouse.store.load(name))
        except UnknownTopicError:
            continue
        except Exception as error:  # the others are listed (C50)
            unreadable.append(UnreadableTopic(str(name), str(as_lithify_error(error, name))))
            continue
        logs += [failing_log(LogId(name, partition), failure) for partition, failure in failures.items()]
    return QuarantineReport(worst_first(logs), tuple(unreadable), warehouse.clock.now_ms())


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
            f"{name}: none of its logs is quarantined or failing",
            hint="`lithify quarantine list` shows those of all topics",
        )
    if partitions is None:
        return tuple(sorted(failures))
    others = [partition for partition in sorted(set(partitions)) if partition not in failures]
    if others:
        named = ", ".join(map(str, sorted(failures)[:NAMED_AT_MOST]))
        more = f" and {len(failures) - NAMED_AT_MOST} more" if len(failures) > NAMED_AT_MOST else ""
        raise RefusedError(
            f"{LogId(name, others[0])} is not quarantined or failing; nothing was released",
            hint=f"of {name} these are: {named}{more}",
        )
    return tuple(sorted(set(partitions)))
