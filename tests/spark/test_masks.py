"""Rounds on Spark that hide dead records instead of rewriting segments: what is left is the same."""

from __future__ import annotations

from pathlib import Path
from random import Random

from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.rules.compaction.decisions import AddMask, Rewrite
from lithify.rules.compaction.outcome import LogOutcome
from lithify.spark.engine import SparkEngine
from support.topics.stored_topics import StoredTopic

MASKING = TopicSettings(segment_bytes=4000, segment_max_dead_ratio=0.8)


def kinds(outcome: LogOutcome) -> list[tuple[type, bool]]:
    """What was decided on each segment, and whether it had a mask before."""
    decided = [done.decision for done in outcome.applied if isinstance(done.decision, Rewrite | AddMask)]
    return [(type(one), one.segments[0].mask is not None) for one in decided]


def test_rounds_that_mask_leave_what_the_oracle_leaves(engine: SparkEngine, tmp_path: Path) -> None:
    """Dirty segments and clean ones, masked again and rewritten from beneath a mask, several of them in one task."""
    topic, random, seen = StoredTopic(tmp_path, MASKING), Random(3), []
    for partition in (0, 0, 1):
        topic.append(partition, [Record(b"k%d" % n, random.randbytes(30)) for n in range(100)])
    for turn in range(4):
        for partition in (0, 1):
            keys = random.sample(range(100), 20 + 10 * turn)
            topic.append(partition, [Record(b"k%d" % n, random.randbytes(30)) for n in keys] * (1 + turn % 2))
        for outcome in topic.round(engine).values():
            seen += kinds(outcome)
            assert outcome.findings.bytes_read > 0
    assert {(AddMask, False), (AddMask, True), (Rewrite, True)} <= set(seen)
