"""What the metadata of a version says of its tombstones (C19), and of its last record (C36)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lithify.model.record import Record
from lithify.model.topic.log import LastRecord, TombstoneStep
from lithify.rules.proof.consistency import metadata_findings
from support.topics.memory_topic import MemoryTopic


@pytest.mark.parametrize(("tombstones", "wrong"), [(0, 0), (-1, 1)])
def test_a_step_counts_no_tombstones_or_some(tombstones: int, wrong: int) -> None:
    topic = MemoryTopic()
    log = replace(topic.log(), steps=(TombstoneStep(0, 5, tombstones),))
    findings = [*metadata_findings(topic.state, log, ())]
    assert len(findings) == wrong, findings


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("stored", [None, *range(4)])
def test_a_wrong_last_record_is_shown_beside_another_one(start: int, stored: int | None) -> None:
    """Even if the log starts after the last record that its segments have."""
    topic = MemoryTopic()
    topic.append([Record(b"k", b"v", offset) for offset in range(3)])
    last = None if stored is None else LastRecord(stored, stored)
    log = replace(topic.log(), log_start_offset=start, last_record=last)
    shown = [f.message for f in metadata_findings(topic.state, log, topic.segments()) if "the last record" in f.message]
    actual = None if start == 3 else 2
    assert len(shown) == (stored != actual)
    for message in shown:
        before, after = re.findall(r"LastRecord\([^)]*\)|None", message)
        assert before != after, message
