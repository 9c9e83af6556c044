"""`Topic.get`: one key as `Topic.table` has it, whatever has happened to its topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lithify
from lithify import AtTime, Record
from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.errors import InvalidInputError, RefusedError, UnknownTopicError, UnknownVersionError
from lithify.model.message import Envelope, MessageId
from lithify.service.round.compact import RunRequest, compact
from lithify.testing import memory_lake
from lithify.testing.oracle_engine import OracleEngine

STORES: dict[str, Callable[[Path], Lake]] = {
    "memory": lambda _: memory_lake(),
    "stored": lambda folder: lithify.open(str(folder)),
}


@pytest.fixture(params=STORES.values(), ids=STORES)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made: Lake = request.param(tmp_path)
    return made


def a_round(topic: Topic) -> None:
    compact(topic.warehouse, OracleEngine(topic.warehouse.files), topic.topic_name, RunRequest())


def live(topic: Topic, **how: Any) -> dict[tuple[int | None, bytes | None], Record]:
    """What `table` has, by partition and key."""
    return {(r.partition, r.key): r for batch in topic.table_batches(**how) for r in batch.records()}


def check(topic: Topic, *keys: bytes, **how: Any) -> None:
    """Each key of each partition is as in the table of the same state."""
    table = live(topic, **how)
    for partition in topic.state().partitions:
        for key in keys:
            assert topic.get(key, partition=partition, **how) == table.get((partition, key))


def test_the_latest_record_of_a_key(lake: Lake) -> None:
    """C12, C16, C17: whole keys, an empty one among them; deleted and unknown ones are None, and so are prefixes."""
    topic = lake.create_topic("orders", partitions=3, config={"null.key": "retain"})
    given = [
        (b"", b"empty"),
        (b"ab", b"1"),
        (b"a", b"2"),
        (b"ab", b"3"),
        (b"gone", b"4"),
        (b"gone", None),
        (None, b"5"),
    ]
    topic.append([Record(key, value, 1_000, (("h", b"x"),)) for key, value in given])
    for key, value in ((b"", b"empty"), (b"ab", b"3"), (b"a", b"2")):
        record = topic.get(key)
        assert record is not None
        assert record in [*topic.reader()]
        assert (record.key, record.value, record.headers) == (key, value, (("h", b"x"),))
    for missing in (b"gone", b"never", b"b", b"abc"):
        assert topic.get(missing) is None


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
@pytest.mark.parametrize("strategy", ["offset", "timestamp"])
def test_before_and_after_rounds_deletions_and_undo(lake: Lake, mode: str, strategy: str) -> None:
    """C10, C26, C33: with a dirty part as well, in a view as well."""
    config = {"compaction.mode": mode, "compaction.strategy": strategy, "segment.max.dead.ratio": "0.9"}
    topic = lake.create_topic("orders", config=config)
    keys = [b"%d" % n for n in range(12)]
    topic.append([Record(key, b"first", 5_000) for key in keys[:10]])
    check(topic, *keys)
    a_round(topic)
    topic.append([Record(b"3", None, 9_000), Record(b"4", b"late", 1_000), Record(b"11", b"new", 9_000)])
    check(topic, *keys)
    a_round(topic)
    check(topic, *keys)
    topic.append([Record(b"3", b"again", 9_001)])
    check(topic, *keys)
    check(topic, *keys, at=11)
    check(topic, *keys, version=topic.versions()[0].version)
    topic.delete_records(0, 6)
    check(topic, *keys)
    a_round(topic)
    topic.undo()
    check(topic, *keys)
    assert {key for key in keys if topic.get(key) is not None} == {key for _, key in live(topic)}


def test_earlier_states(lake: Lake) -> None:
    """C69."""
    topic = lake.create_topic("orders")
    for n in range(3):
        topic.append([Record(b"k", b"%d" % n, 1_000 * n)])
    values = [record and record.value for record in (topic.get(b"k", at=at) for at in range(4))]
    assert values == [None, b"0", b"1", b"2"]
    assert topic.get(b"k", at=AtTime(1_500)) == topic.get(b"k", at=2)
    with pytest.raises(RefusedError, match="cannot be combined with version"):
        topic.get(b"k", at=1, version=1)
    with pytest.raises(UnknownVersionError):
        topic.get(b"k", version=77)


def test_the_same_key_in_two_partitions_is_two_keys(lake: Lake) -> None:
    """C13."""
    topic = lake.create_topic("orders", partitions=3)
    topic.append([Record(b"k", b"%d" % partition, partition=partition) for partition in (0, 2)])
    with pytest.raises(RefusedError, match="orders: the key is in partitions 0, 2"):
        topic.get(b"k")
    found = [topic.get(b"k", partition=partition) for partition in range(3)]
    assert [record and record.value for record in found] == [b"0", None, b"2"]
    topic.append([Record(b"k", None, partition=0)])
    assert topic.get(b"k") == topic.get(b"k", partition=2)
    with pytest.raises(UnknownTopicError, match="no partition 3"):
        topic.get(b"k", partition=3)


def test_a_record_of_pulsar_has_its_id(lake: Lake) -> None:
    """C52, C53: what was passed through whole has no key to look up."""
    topic = lake.create_topic("copy", like="pulsar", config={"message.ids": "pulsar"})
    envelopes = (Envelope(MessageId(7, 1, 0), 5), Envelope(MessageId(7, 2), None, b"", True))
    topic.append([Record(key, b"v", 9, (), 0, envelope=e) for key, e in zip((b"a", None), envelopes, strict=True)])
    record = topic.get(b"a")
    assert record is not None
    assert record.envelope == envelopes[0]
    assert topic.get(b"") is None


@pytest.mark.parametrize("key", [None, "k", 7])
def test_a_key_that_is_not_bytes_is_refused(lake: Lake, key: Any) -> None:
    with pytest.raises(InvalidInputError, match="is not bytes"):
        lake.create_topic("orders").get(key)
