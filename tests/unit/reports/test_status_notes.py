"""What `status` says of deletes that stay for entries of Pulsar (C53)."""

from __future__ import annotations

import pytest

from lithify.service.look.status import topic_status
from support.builders import a_log, with_id
from support.topics.memory_topic import MemoryTopic

BY_CHUNKS = (
    "1 tombstone, expired ones below 3 remain while chunks have their keys (1 in all), or records that they beat are "
    "above the horizon"
)
BY_BATCHES = "2 tombstones, which remain: entries passed through whole may hide what they delete (1)"


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
@pytest.mark.parametrize(
    ("drawn", "counts", "note"),
    [("□a=x c=∅ a=∅", (0, 1, 3), BY_CHUNKS), ("□=x c=∅ a=∅", (1, 0, None), BY_BATCHES)],
)
def test_what_entries_hold_is_told(mode, drawn, counts, note):
    topic = MemoryTopic(message_ids="pulsar", delete_retention_ms=0, compaction_mode=mode)
    topic.append([with_id(record) for record in a_log(drawn).records])
    topic.compact()
    status = topic_status(topic.warehouse, topic.state)
    (log,) = status.logs
    assert (log.passed_through, log.chunks, log.tombstones_held_below) == counts
    assert (log.due, log.next_tombstone_expiry_ms) == (False, None)
    assert note in status.page().table.notes(log)[0]
