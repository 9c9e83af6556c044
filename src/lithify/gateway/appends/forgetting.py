"""Forgets the keys of old appends (C75).

    begun more than a day ago, landed      removed
                               open        settled first, as its gateway may only be paused; then removed

A run whose note was removed does not commit those records any more.
"""

from __future__ import annotations

from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes
from lithify.errors import CoordinationError, LithifyError, UnknownTopicError
from lithify.gateway.appends.settling import ChainGoneError, settled
from lithify.model.names import TopicName
from lithify.model.topic.append_note import NOTES_KEPT_MS, AppendNote
from lithify.ports.store import Warehouse

OPEN_AT_ONCE = 100
"""Each may need a commit."""
LANDED_AT_ONCE = 2_000
"""Rows that one transaction removes."""


def forget_old(warehouse: Warehouse, notes: SqlAppendNotes, now_ms: int) -> int:
    """Forgets the requests that began more than `NOTES_KEPT_MS` ago; returns how many notes may be left.

    Call it from time to time, again at once if some may be left. Raises `CoordinationError`, or what `settled` raises
    while the catalog cannot be reached.
    """
    notes.forget_before(now_ms - NOTES_KEPT_MS)
    for topic, note in notes.forgotten(OPEN_AT_ONCE):
        try:
            _remove(warehouse, notes, topic, note)
        except (
            LithifyError
        ) as error:  # a topic that is damaged must not keep all other notes; the next call tries again
            if error.is_outage or isinstance(error, CoordinationError):
                raise
    removed = notes.remove_landed(LANDED_AT_ONCE)
    return removed if removed == LANDED_AT_ONCE else 0


def _remove(warehouse: Warehouse, notes: SqlAppendNotes, topic: TopicName, note: AppendNote) -> None:
    try:
        left = settled(warehouse, notes, topic, note)
    except (UnknownTopicError, ChainGoneError):  # it does not land any more
        left = note
    if left is not None and left.version is None:
        notes.remove(topic, left)
