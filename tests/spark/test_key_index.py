"""Rounds on Spark that ask the indexes of clean segments for few keys: what is left is the same."""

from __future__ import annotations

from pathlib import Path
from random import Random

from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.spark.engine import SparkEngine
from support.topics.stored_topics import StoredTopic

KEYS = 70_000  # a hundredth of `segment.bytes`, below which segments are rewritten, is less


def test_a_round_of_few_changes_reads_little_of_a_large_segment(engine: SparkEngine, tmp_path: Path) -> None:
    """Twice, so that the second one meets a mask; tombstones among the changes, and keys that are new."""
    read = {}
    for enabled in ("true", "false"):
        random = Random(5)
        topic = StoredTopic(tmp_path / enabled, TopicSettings(key_index_enable=enabled))
        topic.append(0, [Record(random.randbytes(16) + b"%d" % n, b"v") for n in range(KEYS)])
        keys = [record.key for record in topic.records(0)]
        topic.round(engine)
        assert topic.segments[0][0].keys_indexed == (enabled == "true")
        for _ in range(2):
            changed = [*random.sample(keys, 5), b"new", random.randbytes(16)]
            topic.append(0, [Record(key, random.choice([b"w", None])) for key in changed])
            (outcome,) = topic.round(engine).values()
            read[enabled] = outcome.findings.bytes_read
        assert topic.segments[0][0].mask is not None
    assert read["true"] < read["false"] / 2
