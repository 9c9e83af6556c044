"""What the metadata of a version says of its tombstones (C19)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.topic.log import TombstoneStep
from lithify.rules.proof.consistency import metadata_findings
from support.topics.memory_topic import MemoryTopic


@pytest.mark.parametrize(("tombstones", "wrong"), [(0, 0), (-1, 1)])
def test_a_step_counts_no_tombstones_or_some(tombstones: int, wrong: int) -> None:
    topic = MemoryTopic()
    log = replace(topic.log(), steps=(TombstoneStep(0, 5, tombstones),))
    findings = [*metadata_findings(topic.state, log, ())]
    assert len(findings) == wrong, findings
