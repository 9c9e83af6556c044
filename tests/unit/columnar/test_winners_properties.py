"""The kernels against the oracle: generated logs, several rounds, whatever the number of ranges."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar import segment_file
from lithify.model.record import Record
from lithify.model.settings import TopicSettings
from support.kernel_engine import KernelEngine
from support.record_strategies import records
from support.stored_topics import StoredTopic


@pytest.fixture(autouse=True, scope="module")
def small_row_groups():
    """So that a segment of a few records has several of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_file, "ROW_GROUP_RECORDS", 5)
        yield


topic_settings = st.builds(
    TopicSettings,
    null_key=st.sampled_from(["reject", "drop", "retain"]),
    empty_value=st.sampled_from(["value", "tombstone"]),
    delete_retention_ms=st.sampled_from([0, 100, 86_400_000]),
    min_compaction_lag_ms=st.sampled_from([0, 0, 500]),
    segment_bytes=st.sampled_from([2000, 2**27]),
)
appends = st.lists(st.lists(records(), min_size=1, max_size=12), min_size=1, max_size=4)


@st.composite
def histories(draw):
    """What happens to a log before each round: appends with gaps, a moved start, time that passes."""
    rounds = []
    for _ in range(draw(st.integers(1, 4))):
        rounds.append(
            (draw(appends), draw(st.integers(0, 3)), draw(st.floats(0, 1)), draw(st.sampled_from([0, 0, 150])))
        )
    return rounds


@given(topic_settings, histories(), st.sampled_from([1, 2, 3]))
@settings(max_examples=60, deadline=None)
def test_every_round_leaves_what_the_oracle_leaves(topic_settings, history, ranges):
    with tempfile.TemporaryDirectory() as folder:
        topic = StoredTopic(Path(folder), topic_settings)
        now_ms = 1000
        for batches, gap, start_at, passes_ms in history:
            for batch in batches:
                topic.append(0, with_gaps(batch, topic.logs[0].log_end_offset if topic.logs else 0, gap))
            log = topic.logs[0]
            if start_at > 0.8:
                topic.move_start(0, int(start_at * (log.log_end_offset - log.log_start_offset)) + log.log_start_offset)
            now_ms += passes_ms
            topic.round(KernelEngine(ranges), now_ms=now_ms)


def with_gaps(batch: list[Record], first: int, gap: int) -> list[Record]:
    return [replace(record, offset=first + i * (gap + 1)) for i, record in enumerate(batch)]
