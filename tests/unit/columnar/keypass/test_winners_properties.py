"""The kernels against the oracle: generated logs, several rounds, whatever the number of ranges."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.keypass import indexed_keys
from lithify.columnar.keypass.orders import header_orders
from lithify.columnar.keypass.winners import WinnerFinder, latest_offsets
from lithify.columnar.segment import writer
from lithify.columnar.segment.convert import to_table
from lithify.model.record import Record
from lithify.model.settings.table import Strategy
from lithify.model.settings.topic_settings import TopicSettings
from lithify.rules.compaction.survivor_rules import NO_ORDER, header_order, table_rules
from lithify.rules.compaction.survivors import survivors
from lithify.rules.lifecycle.setting_changes import altered
from support.engines.kernel import KernelEngine
from support.generated.indexed_files import every_file_indexed, weak_hashes
from support.generated.logs import with_whole_entries
from support.generated.records import ORDER_HEADER, order_headers, records
from support.topics.stored_topics import ACCESS, StoredTopic

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True, scope="module")
def small_row_groups():
    """So that a segment of a few records has several of them; and an index, by which all its records are found."""
    with pytest.MonkeyPatch.context() as patch, every_file_indexed():
        patch.setattr(writer, "ROW_GROUP_RECORDS", 5)
        patch.setattr(indexed_keys, "KEYS_PER_WANTED", 0)
        patch.setattr(indexed_keys, "KEYS_PER_CANDIDATE", 0)
        yield


topic_settings = st.builds(
    TopicSettings,
    null_key=st.sampled_from(["reject", "drop", "retain"]),
    empty_value=st.sampled_from(["value", "tombstone"]),
    delete_retention_ms=st.sampled_from([0, 0, 100, 86_400_000]),
    min_compaction_lag_ms=st.sampled_from([0, 0, 500]),
    segment_bytes=st.sampled_from([500, 2000, 2**27]),
    segment_max_dead_ratio=st.sampled_from([0.0, 0.8, 1.0]),
    key_index_enable=st.sampled_from(["true", "true", "false"]),
    cleanup_policy=st.sampled_from(["compact", "compact,delete"]),
    retention_ms=st.sampled_from([-1, 200, 1000]),
    compaction_strategy=st.sampled_from(get_args(Strategy)),
    compaction_strategy_header=st.just(ORDER_HEADER),
)
engines = st.builds(KernelEngine, st.sampled_from([1, 2, 3]), st.booleans(), ahead=st.booleans())
appends = st.lists(st.lists(records(), min_size=1, max_size=12), min_size=1, max_size=4)
CHUNK_KEYS = (b"a", b"ab", b"", None)
mostly_chunks = st.lists(
    st.lists(records((None, None, b"a", b"ab")), min_size=1, max_size=12).map(
        lambda batch: with_whole_entries(batch, CHUNK_KEYS)
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def histories(draw, appends=appends):
    """What happens to a log before each round: appends with gaps, a moved start, time that passes."""
    rounds = []
    for _ in range(draw(st.integers(1, 4))):
        rounds.append(
            (draw(appends), draw(st.integers(0, 3)), draw(st.floats(0, 1)), draw(st.sampled_from([0, 0, 150, 600])))
        )
    return rounds


def live(topic, history, engine):
    """Rounds between appends and moves of the log start; each is compared with the oracle."""
    now_ms = 1000
    for batches, gap, start_at, passes_ms in history:
        for batch in batches:
            topic.append(0, with_gaps(batch, topic.logs[0].log_end_offset if topic.logs else 0, gap))
        log = topic.logs[0]
        if start_at > 0.8:
            topic.move_start(0, int(start_at * (log.log_end_offset - log.log_start_offset)) + log.log_start_offset)
        now_ms += passes_ms
        topic.round(engine, now_ms=now_ms)


@given(topic_settings, histories(), engines)
@settings(max_examples=20, deadline=None)
def test_every_round_leaves_what_the_oracle_leaves(topic_settings, history, engine):
    """C4, C9 to C12, C16 to C18, C20, C24, C26."""
    with tempfile.TemporaryDirectory() as folder:
        topic = StoredTopic(Path(folder), topic_settings)
        live(topic, history, engine)


def test_a_tombstone_that_beats_a_record_above_the_horizon_stays_in_later_rounds(tmp_path):
    """C20: the round after does not ask again what it beats, as nothing has come below the horizon."""
    waiting = TopicSettings(
        null_key="reject",
        delete_retention_ms=0,
        min_compaction_lag_ms=500,
        segment_bytes=500,
        segment_max_dead_ratio=0.0,
        compaction_strategy="timestamp",
    )
    topic = StoredTopic(tmp_path, waiting)
    keyless, late = Record(key=None, value=None, timestamp=0), Record(key=None, value=None, timestamp=651)
    tombstone, beaten = (Record(key=b"k", value=None, timestamp=at_ms) for at_ms in (539, 0))
    history = [
        ([[keyless, tombstone]], 3, 0.0, 0),
        ([[beaten, keyless], [keyless, late], [keyless, beaten]], 0, 0.0, 150),
        ([[keyless]], 0, 0.0, 0),
    ]
    live(topic, history, KernelEngine(1, False, ahead=False))
    assert tombstone.timestamp in [record.timestamp for record in topic.records(0) if record.key == b"k"]


@given(topic_settings, histories(), engines)
@settings(max_examples=20, deadline=None)
def test_rounds_leave_the_same_where_indexes_name_records_of_other_keys(topic_settings, history, engine):
    """C12: most keys share their hash with others."""
    with tempfile.TemporaryDirectory() as folder, weak_hashes():
        live(StoredTopic(Path(folder), replace(topic_settings, key_index_enable="true")), history, engine)


@given(topic_settings, histories(mostly_chunks), engines)
@settings(max_examples=20, deadline=None)
def test_every_round_over_a_copy_of_pulsar_leaves_what_the_oracle_leaves(topic_settings, history, engine):
    """C53: chunks, and entries that may have any key, among the records without a key."""
    with tempfile.TemporaryDirectory() as folder:
        topic = StoredTopic(Path(folder), replace(topic_settings, message_ids="pulsar"))
        live(topic, history, engine)


@given(st.lists(topic_settings, min_size=2, max_size=4), st.lists(appends, min_size=4, max_size=4), engines)
@settings(max_examples=20, deadline=None)
def test_rounds_whose_settings_change_in_between(settings_of_rounds, batches, engine):
    """C43: what another strategy has left competes under the new one."""
    with tempfile.TemporaryDirectory() as folder:
        topic = StoredTopic(Path(folder))
        for number, topic_settings in enumerate(settings_of_rounds):
            for batch in batches[number]:
                topic.append(0, batch)
            logs = altered(topic.state, topic.segments[0], topic_settings, 1)
            topic.settings, topic.logs = topic_settings, [logs.get(0, topic.logs[0])]
            topic.round(engine, now_ms=1000 + 150 * number)


@given(topic_settings, appends, st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_latest_offsets_are_those_that_the_oracle_leaves(topic_settings, batches, start):
    with tempfile.TemporaryDirectory() as folder:
        topic = StoredTopic(Path(folder), topic_settings)
        for batch in batches:
            topic.append(0, batch)
        topic.move_start(0, min(start, topic.logs[0].log_end_offset))
        rules = table_rules(topic.logs[0], topic_settings)
        found = latest_offsets(ACCESS, topic.segments[0], rules, WinnerFinder(2**26, "seed"))
        assert list(found) == [r.offset for r in survivors(topic.records(0), rules).records]


@given(st.lists(order_headers, max_size=30), st.integers(0, 5), st.booleans())
@settings(deadline=None)
def test_versions_in_headers_are_those_of_single_records(headers, cut, chunked):
    """C10: the last header of the name, if it has exactly 8 bytes."""
    column = to_table([Record(b"k", b"v", 0, h) for h in headers]).column("headers").slice(cut)
    if chunked and len(column) > 2:
        column = pa.chunked_array([*column.slice(2).chunks, *column.slice(0, 2).chunks])
        headers = [*headers[cut + 2 :], *headers[cut : cut + 2]]
    else:
        headers = headers[cut:]
    expected = [header_order(h, ORDER_HEADER) for h in headers]
    found = header_orders(column, ORDER_HEADER).to_pylist()
    assert [NO_ORDER if order is None else order for order in found] == expected


def with_gaps(batch: list[Record], first: int, gap: int) -> list[Record]:
    return [record._replace(offset=first + i * (gap + 1)) for i, record in enumerate(batch)]
