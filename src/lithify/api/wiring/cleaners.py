"""The cleaners that share a catalog, as the database of leases shows them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping

from lithify.api.wiring import COORDINATION_VARIABLE, cleaner_notes
from lithify.api.wiring.scopes import database_of, scope_of, source_of
from lithify.coordination.leases.keeper import CLEANER
from lithify.model.names import TopicName, in_order
from lithify.ports.leases import Lease
from lithify.ports.store import Warehouse
from lithify.reports.looks.cleaners import HeldLog, RunningCleaner
from lithify.service.look.status import read_topics

Names = Mapping[str, TopicName]
"""Of topics, by what identifies each."""


def running_cleaners(
    warehouse: Warehouse, url: str | None = None, names: Callable[[], Names] | None = None
) -> list[RunningCleaner]:
    """By name; none where there is no shared database. Without `names` all topics are read for them.

    Raises `CoordinationError`.
    """
    url = url or os.environ.get(COORDINATION_VARIABLE) or None
    notes = {note.cleaner: note for note in cleaner_notes(warehouse, url) or ()}
    if not notes:
        return []
    from lithify.coordination.leases.sql_coordination import open_coordination

    coordination = open_coordination(url, database_of(source_of(warehouse).existing()), makes_table=False)
    leases = coordination.leases()
    upkeep = f"role:upkeep@{scope_of(warehouse).name}"
    held: dict[str, list[HeldLog]] = defaultdict(list)
    topics = (names or (lambda: _topics(warehouse)))() if any(map(_of_a_log, leases)) else {}
    for lease in filter(_of_a_log, leases):
        identity, _, partition = lease.name.rpartition("/")
        name = topics.get(identity)
        held[_cleaner(lease)].append(HeldLog(None if name is None else str(name), int(partition)))
    keeps = {_cleaner(lease) for lease in leases if lease.name == upkeep}
    return [
        RunningCleaner(
            cleaner=name,
            started_ms=note.started_ms,
            looked_ms=note.looked_ms,
            interval_ms=note.interval_ms,
            does_upkeep=name in keeps,
            logs=tuple(sorted(held[name], key=lambda log: (in_order(log.topic or ""), log.partition))),
        )
        for name, note in sorted(notes.items(), key=lambda known: in_order(known[0]))
    ]


def _of_a_log(lease: Lease) -> bool:
    return not lease.name.startswith((CLEANER, "role:")) and lease.name.rpartition("/")[2].isdecimal()


def _cleaner(lease: Lease) -> str:
    """An owner is the id of a cleaner, and which run of it."""
    return lease.owner.rpartition("/")[0]


def _topics(warehouse: Warehouse) -> Names:
    states, _ = read_topics(warehouse.store, lambda state: state.identity)
    return {identity: name for name, identity in states.items()}
