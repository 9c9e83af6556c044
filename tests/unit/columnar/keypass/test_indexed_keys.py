"""What rounds read by indexes of keys, against what their plans promise (C30)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lithify.columnar.keyindex.key_index import KeyIndex
from lithify.columnar.keypass import indexed_keys
from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from support.engines.kernel import KernelEngine
from support.generated.indexed_files import every_file_indexed
from support.topics.stored_topics import StoredTopic

INDEXED = TopicSettings(key_index_enable="true", segment_max_dead_ratio=1.0)


@pytest.fixture(autouse=True)
def every_index_is_asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(indexed_keys, "KEYS_PER_WANTED", 0)
    with every_file_indexed():
        yield


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("keys_per_candidate", [0, 1000])
def test_a_round_reads_no_more_than_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool, keys_per_candidate: int
) -> None:
    """Also where the answer is not followed, and where an earlier version has written the manifest."""
    monkeypatch.setattr(indexed_keys, "KEYS_PER_CANDIDATE", keys_per_candidate)
    asked, index_of = [], KeyIndex.of
    monkeypatch.setattr(KeyIndex, "of", lambda file: asked.append(file) or index_of(file))
    topic = StoredTopic(tmp_path, INDEXED)
    topic.append(0, [Record(b"key-%d" % n, b"v") for n in range(200)])
    topic.round(KernelEngine())
    topic.append(0, [Record(b"key-7", b"w")])
    topic.segments[0] = tuple(replace(segment, keys_indexed=known) for segment in topic.segments[0])
    (plan,) = topic.plans()
    (outcome,) = topic.round(KernelEngine()).values()
    assert 0 < outcome.findings.bytes_read <= plan.key_bytes
    assert bool(asked) == known, "its bytes are not in the plan"
