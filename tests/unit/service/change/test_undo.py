"""Taking a round back where the backlog was trimmed since (C7, C33)."""

from __future__ import annotations

import pytest

from lithify.errors import NothingToUndoError
from lithify.model.record import Record
from lithify.service.change.cut import delete_records
from lithify.service.change.retain import retain
from lithify.service.change.undo import undo
from support.topics.memory_topic import ORDERS, MemoryTopic

RETENTION_MS = 100


@pytest.fixture
def topic() -> MemoryTopic:
    """A view of two segments, of which the first goes from the backlog with time."""
    made = MemoryTopic(
        compaction_mode="side-by-side", cleanup_policy="compact,delete", retention_ms=RETENTION_MS, now_ms=1_000
    )
    made.append([Record(b"old", b"1", 1_000)])
    made.append([Record(b"young", b"1", 1_080)])
    made.compact()
    return made


def compacted(topic: MemoryTopic) -> list[bytes | None]:
    return [record.key for record in topic.records(compacted=True)]


def test_what_only_the_view_has_is_not_given_up(topic: MemoryTopic) -> None:
    topic.clock.set(1_101)
    assert retain(topic.warehouse, ORDERS).changed
    assert compacted(topic) == [b"old", b"young"]
    with pytest.raises(NothingToUndoError, match="whose records only the compacted view has"):
        undo(topic.warehouse, ORDERS)
    assert compacted(topic) == [b"old", b"young"]


def test_files_that_were_deleted_since_do_not_stop_an_undo(topic: MemoryTopic) -> None:
    """C26: it is gone from the view as well."""
    delete_records(topic.warehouse, ORDERS, 0, 1)
    undo(topic.warehouse, ORDERS)
    assert compacted(topic) == [b"young"]
