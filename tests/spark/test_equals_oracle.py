"""Rounds on Spark leave what the oracle leaves: every field of every record, in order (C1, C4, C9, C12)."""

from __future__ import annotations

from random import Random

import pytest

from lithify.columnar.segment.writer import ROW_GROUP_RECORDS
from lithify.model.message import Envelope, MessageId
from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.ports.engine import RunLimits
from lithify.rules.compaction.decisions import work_of
from lithify.rules.compaction.key_pass_shape import KeyPassShape
from lithify.rules.compaction.survivor_rules import Cause
from spark.engines import engine_without_session
from support.chunks import chunk_metadata
from support.generated.records import HARD_KEYS
from support.topics.stored_topics import StoredTopic, files_of

SHAPES = {
    "one range": KeyPassShape(1, shuffled=False),  # as small logs have it
    "three ranges": KeyPassShape(3, shuffled=False),
    "read ahead": KeyPassShape(2, shuffled=False, ahead=True),
    "shuffled": KeyPassShape(3, shuffled=True),
}
DAY_MS = 86_400_000


@pytest.fixture(params=["three ranges", "read ahead", "shuffled"])
def shape(request, monkeypatch):
    """The ways in which a key pass is cut; a test that takes this runs those with several ranges."""
    forced = SHAPES[request.param]
    monkeypatch.setattr("lithify.spark.engine.key_pass_shapes", lambda plans, *_, **__: [forced] * len(plans))
    return forced


def random_records(random: Random, count: int, keys: tuple[bytes | None, ...]) -> list[Record]:
    """Records over these keys: a fifth tombstones, some empty or large values, some with headers."""
    values = [None, b"", b"v", random.randbytes(20), b"x" * 5000]
    return [
        Record(
            key=random.choice(keys),
            value=random.choice(values),
            timestamp=random.randrange(1000),
            headers=((("h", random.choice([None, b"", b"1"])),) * random.randrange(3)),
            timestamp_type=random.choice(["CreateTime", "LogAppendTime"]),
        )
        for _ in range(count)
    ]


def numbered(random: Random, records: list[Record], first: int) -> list[Record]:
    """Offsets that ascend with gaps, as a mirrored log has them."""
    offset = first
    result = []
    for record in records:
        offset += random.choice([1, 1, 1, 2, 50])
        result.append(record._replace(offset=offset))
    return result


def many_keys(count: int) -> tuple[bytes, ...]:
    return tuple(f"key-{i:012d}".encode() for i in range(count))


@pytest.mark.parametrize(
    ("shape", "null_key"),
    [("one range", "drop"), ("three ranges", "retain"), ("shuffled", "drop"), ("shuffled", "retain")],
    indirect=["shape"],
)
def test_rounds_over_hard_keys(shape, engine, tmp_path, null_key):
    settings = TopicSettings(null_key=null_key, empty_value="tombstone", delete_retention_ms=100, segment_bytes=20_000)
    topic, random = StoredTopic(tmp_path, settings), Random(1)
    for round_ in range(3):
        for partition in range(2):
            for _ in range(3):
                topic.append(partition, random_records(random, 40, HARD_KEYS))
        topic.round(engine, now_ms=60 * round_)


def versioned_records(random: Random, count: int, now_ms: int) -> list[Record]:
    """Records late and out of order by timestamp and by header; some without an order, or with a wrong one."""
    versions = [None, b"1234567", b"123456789", *((n % 2**64).to_bytes(8) for n in (-5, 0, 1, 2, 3, 2**63))]
    return [
        record._replace(
            timestamp=max(0, now_ms - random.randrange(1000)),
            headers=tuple(("v", random.choice(versions)) for _ in range(random.choice([0, 1, 1, 1, 2]))),
        )
        for record in random_records(random, count, HARD_KEYS)
    ]


@pytest.mark.parametrize(
    ("shape", "strategy"),
    [("one range", "timestamp"), ("three ranges", "header"), ("shuffled", "timestamp"), ("shuffled", "header")],
    indirect=["shape"],
)
def test_rounds_where_versions_decide_and_records_wait(shape, engine, tmp_path, strategy):
    """C10, C11, C20, C24: old tombstones stay while what they beat waits above the horizon."""
    settings = TopicSettings(
        cleanup_policy="compact,delete",
        null_key="retain",
        empty_value="tombstone",
        delete_retention_ms=0,
        min_compaction_lag_ms=500,
        retention_ms=1400,
        compaction_strategy=strategy,
        compaction_strategy_header="v",
    )
    topic, random, held, expired = StoredTopic(tmp_path, settings), Random(11), 0, 0
    for round_ in range(4):
        now_ms = 2000 + 400 * round_
        for partition in range(2):
            for _ in range(3):
                topic.append(partition, versioned_records(random, 30, now_ms))
            topic.append(partition, [Record(key, b"late", now_ms) for key in HARD_KEYS if key])
        for outcome in topic.round(engine, now_ms=now_ms + 450).values():
            held += outcome.findings.tombstones_held
            expired += outcome.findings.losers.get(Cause.PAST_RETENTION, 0)
    assert held and expired


@pytest.mark.parametrize(
    ("shape", "strategy"),
    [("one range", "offset"), ("three ranges", "timestamp"), ("shuffled", "offset"), ("shuffled", "timestamp")],
    indirect=["shape"],
)
def test_rounds_over_chunks_of_large_messages(shape, engine, tmp_path, strategy):
    """C53, C20: each holds the tombstones of its key, above the horizon by what its order beats."""
    settings = TopicSettings(
        message_ids="pulsar",
        null_key="drop",
        delete_retention_ms=0,
        min_compaction_lag_ms=500,
        compaction_strategy=strategy,
    )
    topic, random, held, dropped = StoredTopic(tmp_path, settings), Random(5), 0, 0
    keys = [b"%d" % n for n in range(30)]
    for round_ in range(3):
        now_ms = 2000 + 400 * round_
        for _ in range(4):
            topic.append(0, [chunk_or_delete(random, keys, now_ms) for _ in range(15)])
        topic.append(0, [chunk_or_delete(random, keys, now_ms) for _ in range(3)] + [Record(b"k", b"v", now_ms)])
        for outcome in topic.round(engine, now_ms=now_ms + 450).values():
            held += outcome.findings.tombstones_held_by_chunks
            dropped += outcome.findings.losers.get(Cause.EXPIRED_TOMBSTONE, 0)
    assert held and dropped


def chunk_or_delete(random: Random, keys: list[bytes], now_ms: int) -> Record:
    """A record whose timestamp is old enough for a round; few are chunks."""
    if random.random() < 0.2:
        envelope = Envelope(MessageId(0, 0), metadata=chunk_metadata(random.choice(keys)), passed_through=True)
        return Record(None, b"part", now_ms - random.randrange(100, 500), envelope=envelope)
    return Record(random.choice(keys), random.choice([None, None, b"v"]), now_ms - random.randrange(100, 500))


def test_many_partitions_of_uneven_sizes(shape, engine, topic):
    random = Random(2)
    for partition, count in enumerate([1, 3000, 0, 40, 7, 500, 1, 1]):
        for _ in range(2):
            topic.append(partition, random_records(random, count, many_keys(50)))
    topic.round(engine)


def test_skewed_keys(shape, engine, topic):
    random = Random(3)
    hot = (b"hot",) * 500 + many_keys(100)
    for _ in range(3):
        topic.append(0, random_records(random, 1500, hot))
    assert topic.round(engine)[0].findings.survivors


def test_ranges_whose_tasks_leave_their_results_in_spark(engine, topic, monkeypatch):
    """As those of large logs do: few results come to the driver, and the others of these tests are few."""
    monkeypatch.setattr(
        "lithify.spark.engine.key_pass_shapes", lambda plans, *_, **__: [SHAPES["three ranges"]] * len(plans)
    )
    monkeypatch.setattr("lithify.spark.keypass.job.FULL_RECORDS", 1)
    random = Random(3)
    for _ in range(2):
        for partition in range(3):
            topic.append(partition, random_records(random, 300, many_keys(60)))
    topic.round(engine)


def test_offsets_with_gaps_and_a_start_inside_of_segments(shape, engine, tmp_path):
    topic, random = StoredTopic(tmp_path, TopicSettings(delete_retention_ms=10)), Random(4)
    for round_ in range(3):
        for _ in range(2):
            first = topic.logs[0].log_end_offset if topic.logs else 2**40
            topic.append(0, numbered(random, random_records(random, 60, many_keys(30)), first))
        middle = topic.segments[0][len(topic.segments[0]) // 2]
        topic.move_start(0, (middle.base_offset + middle.end_offset) // 2)
        topic.round(engine, now_ms=20 * round_)
    assert topic.logs[0].log_start_offset > 2**40


def test_logs_cut_in_different_ways_in_one_run(engine, topic, monkeypatch):
    shapes = {
        0: KeyPassShape(2, shuffled=False),
        1: KeyPassShape(3, shuffled=True),
        2: KeyPassShape(2, shuffled=True),
    }
    monkeypatch.setattr(
        "lithify.spark.engine.key_pass_shapes", lambda plans, *_, **__: [shapes[plan.partition] for plan in plans]
    )
    random = Random(9)
    for _ in range(2):
        for partition in shapes:
            topic.append(partition, random_records(random, 300, many_keys(60)))
        topic.round(engine)


def test_segments_of_several_row_groups(engine, topic):
    random = Random(10)
    records = [Record(b"%d" % random.randrange(30_000), b"v") for _ in range(ROW_GROUP_RECORDS + 1000)]
    topic.append(0, records)
    topic.append(0, records[::7])
    topic.round(engine)


def test_tombstones_stay_for_their_retention_and_go_after_it(shape, engine, tmp_path):
    topic = StoredTopic(tmp_path, TopicSettings(delete_retention_ms=DAY_MS))
    topic.append(0, [Record(b"a", b"1"), Record(b"b", b"1"), Record(b"a", None)])
    topic.round(engine, now_ms=0)
    topic.append(0, [Record(b"b", None), Record(b"c", b"1")])
    topic.round(engine, now_ms=DAY_MS - 1)
    assert [r.key for r in topic.records(0)] == [b"a", b"b", b"c"]
    topic.round(engine, now_ms=DAY_MS)
    assert [r.key for r in topic.records(0)] == [b"b", b"c"]
    topic.round(engine, now_ms=2 * DAY_MS - 1)
    assert [r.key for r in topic.records(0)] == [b"c"]


def test_an_incremental_round_reads_only_what_can_have_losers(engine, topic):
    random = Random(5)
    topic.append(0, random_records(random, 500, tuple(b"old-%03d" % i for i in range(100))))
    topic.append(0, random_records(random, 500, tuple(b"new-%03d" % i for i in range(100))))
    topic.round(engine)
    first = [s for s in topic.segments[0] if s.max_key.startswith(b"old")]
    untouched = {path: data for path, data in files_of(topic).items() if path in {s.path for s in first}}
    topic.append(0, random_records(random, 500, tuple(b"new-%03d" % i for i in range(50, 150))))
    plan = topic.plans()[0]
    assert not {s.path for s in plan.scanned} & set(untouched)
    topic.round(engine)
    assert untouched and untouched.items() <= files_of(topic).items()


def test_a_second_round_changes_nothing_and_asks_for_no_session(engine, topic):
    topic.append(0, random_records(Random(6), 200, many_keys(20)))
    topic.round(engine)
    before = files_of(topic)

    outcome = topic.round(engine_without_session())[0]
    assert not outcome.changes
    assert files_of(topic) == before


def test_small_neighbours_without_losers_merge_in_order(engine, topic):
    for i in range(8):
        topic.append(0, [Record(b"%d-%d" % (i, j), b"v") for j in range(5)])
    outcome = topic.round(engine)[0]
    assert len(work_of(done.decision for done in outcome.applied)) == 1
    assert len(topic.segments[0]) == 1


def test_a_range_that_does_not_fit_is_cut(engine, topic, monkeypatch):
    random = Random(8)
    whole = KeyPassShape(1, shuffled=False)
    monkeypatch.setattr("lithify.spark.engine.key_pass_shapes", lambda plans, *_, **__: [whole] * len(plans))
    for _ in range(2):
        topic.append(0, [Record(random.randbytes(200), b"v") for _ in range(60_000)])
    outcome = topic.round(engine, limits=RunLimits(task_memory_bytes=1))[0]
    scanned = sum(s.scan_bytes for s in outcome.plan.scanned)
    assert outcome.findings.bytes_read > 2 * scanned
