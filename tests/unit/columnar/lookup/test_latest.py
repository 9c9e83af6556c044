"""The lookup of one key: what the oracle leaves of it, and no more read than it takes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.lookup import latest
from lithify.columnar.lookup.latest import latest_of_key
from lithify.columnar.segment import writer
from lithify.columnar.segment.checked_file import CheckedFile
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.schema import SEGMENT_SCHEMA
from lithify.errors import DamagedError
from lithify.model.record import Record
from lithify.model.settings.table import Strategy
from lithify.model.settings.topic_settings import TopicSettings
from lithify.rules.compaction.survivor_rules import SurvivorRules, table_rules
from lithify.rules.compaction.survivors import survivors
from support.engines.kernel import KernelEngine
from support.generated.indexed_files import every_file_indexed
from support.generated.logs import with_whole_entries
from support.generated.records import HARD_KEYS, ORDER_HEADER, records
from support.topics.stored_topics import ACCESS, StoredTopic


@pytest.fixture(autouse=True, scope="module")
def small_row_groups() -> Iterator[None]:
    """So that segments of a few records have several of them, and an index of their keys if they may have one."""
    with pytest.MonkeyPatch.context() as patch, every_file_indexed():
        patch.setattr(writer, "ROW_GROUP_RECORDS", 5)
        patch.setattr(latest, "CANDIDATES_AT_ONCE", 2)
        yield


topic_settings = st.builds(
    TopicSettings,
    null_key=st.sampled_from(["drop", "retain"]),
    empty_value=st.sampled_from(["value", "tombstone"]),
    delete_retention_ms=st.sampled_from([0, 86_400_000]),
    segment_bytes=st.sampled_from([500, 2**27]),
    segment_max_dead_ratio=st.sampled_from([0.0, 1.0, 1.0]),
    compaction_strategy=st.sampled_from(get_args(Strategy)),
    compaction_strategy_header=st.just(ORDER_HEADER),
    message_ids=st.sampled_from(["none", "pulsar"]),
    key_index_enable=st.sampled_from(["true", "false"]),
)
histories = st.lists(
    st.tuples(st.lists(st.lists(records(), min_size=1, max_size=12), min_size=1, max_size=3), st.booleans()),
    min_size=1,
    max_size=4,
)


def found(topic: StoredTopic, rules: SurvivorRules, key: bytes) -> list[Record]:
    table = latest_of_key(ACCESS, topic.segments[0], rules, key)
    return [] if table is None else list(to_records(table))


def rules_of(topic: StoredTopic) -> SurvivorRules:
    return table_rules(topic.logs[0], topic.settings)


@pytest.mark.long
@given(topic_settings, histories, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_it_is_what_the_oracle_leaves_of_the_key(
    topic_settings: TopicSettings,
    history: list[tuple[list[list[Record]], bool]],
    start_share: float,
    end_share: float,
) -> None:
    """C9 to C12, C17: with masks and without, within any limits of the log, by any strategy."""
    with tempfile.TemporaryDirectory() as folder:
        topic = StoredTopic(Path(folder), topic_settings)
        for batches, compacts in history:
            for batch in batches:
                topic.append(0, with_whole_entries(batch) if topic_settings.message_ids == "pulsar" else batch)
            if compacts:
                topic.round(KernelEngine(), now_ms=1000)
        end = topic.logs[0].log_end_offset
        every = rules_of(topic)
        part = replace(every, log_start=int(start_share * end), horizon=int(end_share * end))
        for rules in (every, replace(part, tombstones_expire_below=part.horizon)):
            stored = [r for r in topic.records(0) if r.offset is not None and r.offset < rules.horizon]
            left = {record.key: record for record in survivors(stored, rules).records}
            for key in {*(key for key in HARD_KEYS if key is not None), b"never"}:
                assert found(topic, rules, key) == ([left[key]] if key in left else [])


Reads = list[tuple[int, int, str]]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """What is read of which file: (its base offset, row group, column)."""
    told: Reads = []
    read = CheckedFile.read

    def noted(self: CheckedFile, row_group: int, columns: Sequence[str]) -> pa.Table:
        told.extend((int(Path(self._path).name.partition("-")[0]), row_group, column) for column in columns)
        return read(self, row_group, columns)

    monkeypatch.setattr(CheckedFile, "read", noted)
    return told


def whole_records(base: int, group: int) -> Reads:
    return [(base, group, column) for column in SEGMENT_SCHEMA.names]


@pytest.fixture
def topic(tmp_path: Path) -> StoredTopic:
    """Keys a to j in two segments of two row groups each; then k0 to k9, with a delete of k3."""
    topic = StoredTopic(tmp_path)
    for value in (b"old", b"new"):
        topic.append(0, [Record(b"%c" % letter, value) for letter in b"abcdefghij"])
    topic.append(0, [Record(b"k%d" % n, None if n == 3 else b"v") for n in range(10)])
    return topic


def test_the_newest_record_of_the_key_is_the_last_that_is_read(topic: StoredTopic, reads: Reads) -> None:
    """C9: neither older segments, nor those whose bounds leave the key out, nor values of other row groups."""
    (record,) = found(topic, rules_of(topic), b"b")
    assert (record.offset, record.value) == (11, b"new")
    keys = [(10, 1, "key"), (10, 0, "key")]
    assert reads == [*keys, (10, 0, "offset"), (10, 0, "value_size"), *whole_records(10, 0)]


def test_of_a_delete_no_value_is_read(topic: StoredTopic, reads: Reads) -> None:
    assert found(topic, rules_of(topic), b"k3") == []
    assert reads == [(20, 1, "key"), (20, 0, "key"), (20, 0, "offset"), (20, 0, "value_size")]


def test_segments_outside_of_the_limits_are_not_opened(topic: StoredTopic, reads: Reads) -> None:
    rules = replace(rules_of(topic), log_start=10, horizon=20)
    assert found(topic, rules, b"k1") == []
    assert reads == []
    assert [r.offset for r in found(topic, replace(rules, log_start=0, horizon=10), b"a")] == [0]
    assert {base for base, _, _ in reads} == {0}


def test_where_orders_decide_older_segments_are_read_as_well(topic: StoredTopic, reads: Reads) -> None:
    """C10."""
    topic.settings = TopicSettings(compaction_strategy="timestamp")
    topic.append(0, [Record(b"a", b"late", -5)])
    assert [r.value for r in found(topic, rules_of(topic), b"a")] == [b"new"]
    assert {base for base, _, _ in reads} == {0, 10, 30}


def test_a_key_with_most_of_the_records_has_one_of_them(tmp_path: Path) -> None:
    topic = StoredTopic(tmp_path)
    topic.append(0, [Record(b"hot", b"%d" % n) for n in range(1_000)])
    assert [r.offset for r in found(topic, rules_of(topic), b"hot")] == [999]


def test_a_segment_that_is_gone_is_named(topic: StoredTopic) -> None:
    """C8."""
    newest = topic.segments[0][-1].path
    Path(newest).unlink()
    with pytest.raises(DamagedError, match=Path(newest).name):
        found(topic, rules_of(topic), b"k1")
