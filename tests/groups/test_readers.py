"""Readers that are members of a group: where they continue, how they share, and what they may commit (C58)."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

import lithify
from groups.conftest import LEASE_MS, PARTITIONS, Join, pulled, put, wait_until
from lithify import AtTime, Lake, Record, Topic
from lithify.api.groups import Group, Membership
from lithify.coordination.groups.group_reader import GroupReader
from lithify.coordination.leases import database as databases
from lithify.errors import (
    CoordinationError,
    InvalidNameError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    PartitionTakenOverError,
    RefusedError,
    UnknownGroupError,
)
from lithify.kafka import GroupOffset, group_offsets
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.service.documents import put_source
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.oracle_engine import OracleEngine
from support.engines.kernel import compact_without_spark


def numbers(topic: Topic, lease_ms: int = 30_000, **how: object) -> list[int]:
    """What a member reads that ends at the log ends; nothing is committed."""
    with topic.reader(group=Membership("g", lease_ms), **how) as reader:  # type: ignore[call-overload]
        return sorted(int(record.value) for record in reader)


def stored(lake: Lake, group: str = "g") -> dict[int, int]:
    return {p.log.partition: p.cursor.offset for p in Group(lake.warehouse, group).positions()}


def stalled(reader: GroupReader) -> None:
    """Its process is stopped: it renews and looks no more."""
    member = reader._member
    member._left.set()
    member._thread.join()


def test_it_continues_where_the_group_has_committed_to(lake: Lake, topic: Topic) -> None:
    with topic.reader(group="g") as reader:
        for record in reader:
            if record.value == b"4":
                break
        reader.commit()
        before = reader.positions()
        for _ in range(7):
            assert reader.read_next() is not None
    assert stored(lake) == before == {0: 2, 1: 0, 2: 0, 3: 0}
    assert numbers(topic) == [n for n in range(100) if n not in (0, 4)]
    assert numbers(topic) == [n for n in range(100) if n not in (0, 4)], "nothing was committed"
    with topic.reader(group="g") as reader:
        assert sum(batch.num_rows for batch in reader.batches()) == 98
        reader.commit()
    assert stored(lake) == dict.fromkeys(range(PARTITIONS), 25)
    assert numbers(topic) == []
    put(topic, range(100, 103))
    assert numbers(topic) == [100, 101, 102]


@pytest.mark.parametrize("follow", [False, True])
def test_what_is_available_is_so_before_the_first_read(topic: Topic, follow: bool) -> None:
    """C36: partitions are taken with the first call, whichever that is."""
    with topic.reader(group="g", follow=follow) as reader:
        found = 0
        while reader.has_message_available():
            assert reader.read_next() is not None
            found += 1
        reader.commit()
    assert found == 100
    with topic.reader(group="g", follow=follow) as reader:
        assert not reader.has_message_available()
    with pytest.raises(RefusedError):
        reader.has_message_available()


@pytest.mark.parametrize("beyond", [{"null.key": "drop"}, {"compaction.strategy": "timestamp"}])
def test_a_group_that_follows_holds_nothing_of_a_log_whose_last_records_are_gone(
    lake: Lake, beyond: dict[str, str]
) -> None:
    """C58, C61: it has read everything, also where the log ends beyond the last record that is left."""
    topic = lake.create_topic("late", config={"tombstone.hold.groups": "g", "delete.retention.ms": 0, **beyond})
    gone = Record(None, b"2") if "null.key" in beyond else Record(b"b", b"2", 1)
    topic.append([Record(b"a", b"1", 5), Record(b"b", b"1", 5), Record(b"a", None, 6), gone])
    request, engine = RunRequest(), OracleEngine(lake.warehouse.files)
    compact(lake.warehouse, engine, topic.topic_name, request)
    with topic.reader(group="g", follow=True) as reader:
        found = [reader.read_next(), reader.read_next()]
        assert [record and record.value for record in found] == [b"1", None]
        reader.commit()
        assert reader.positions() == {0: 3}
        assert stored(lake) == {0: 4}
        reader.commit()
        compact(lake.warehouse, engine, topic.topic_name, request)
        assert topic.state().log(0).tombstones == 0
        topic.append([Record(b"c", b"3", 7)])
        found = [reader.read_next()]
        assert [record and record.value for record in found] == [b"3"]
    assert numbers(topic) == [3]


def test_where_the_group_has_no_position_it_starts_as_it_is_told(lake: Lake, topic: Topic) -> None:
    assert numbers(topic, start="latest") == []
    with topic.reader(group="g", start="latest") as reader:
        assert reader.read_next() is None
        reader.commit()
    put(topic, range(100, 104))
    assert numbers(topic, start="earliest") == [100, 101, 102, 103]
    with pytest.raises(RefusedError, match="belongs to one log"):
        topic.reader(group="h", start=3)
    assert len(list(topic.reader(group="i", start=AtTime(2**50)))) == 0


def test_a_reader_of_a_group_has_no_partition_version_or_cursor(topic: Topic) -> None:
    for how in ({"partition": 0}, {"version": 1}, {"start": {}}):
        with pytest.raises(RefusedError, match="share its partitions"):
            topic.reader(group="g", **how)  # type: ignore[call-overload]
    with pytest.raises(InvalidNameError):
        topic.reader(group="a/b")
    with pytest.raises(RefusedError, match="too short"):
        Membership("g", 10)


def test_after_it_has_left_it_does_nothing(topic: Topic) -> None:
    reader = topic.reader(group="g")
    reader.close()
    reader.close()
    for call in (reader.commit, reader.read_next, lambda: reader.seek(0, 0)):
        with pytest.raises(RefusedError, match="has left its group"):
            call()


def test_members_share_the_partitions_and_a_leaving_ones_go_to_the_others_at_once(join: Join, topic: Topic) -> None:
    first = join(lease_ms=600_000)
    got = pulled(first)
    assert first.partitions == (0, 1, 2, 3)
    second = join(lease_ms=600_000)
    pulled(second)
    assert second.partitions == ()
    first.commit()  # only then what was read is given up: the second would read it again

    def shared() -> bool:
        got.extend(pulled(first))
        first.commit()
        got.extend(pulled(second))
        return len(first.partitions) == len(second.partitions) == 2

    wait_until(shared)
    put(topic, range(100, 140))
    got += pulled(first) + pulled(second)
    assert sorted(got) == list(range(140))
    first.commit()
    second.commit()
    second.close()
    wait_until(lambda: pulled(first) == [] and first.partitions == (0, 1, 2, 3))


def test_new_partitions_are_shared_too(join: Join, topic: Topic) -> None:
    reader = join()
    pulled(reader)
    topic.alter(partitions=6)
    wait_until(lambda: pulled(reader) == [] and reader.partitions == (0, 1, 2, 3, 4, 5))


def test_one_that_stalled_overwrites_nothing_of_its_successor(join: Join, lake: Lake, topic: Topic) -> None:
    stopped, got = join(), []
    while len(got) < 40:
        record = stopped.read_next()
        assert record is not None
        got.append(record)
    stopped.commit()
    before = stopped.positions()
    for _ in range(9):
        stopped.read_next()
    stalled(stopped)
    successor = join()
    wait_until(lambda: pulled(successor) == [] and len(successor.partitions) == PARTITIONS)
    successor.commit()
    assert stored(lake) == dict.fromkeys(range(PARTITIONS), 25)
    with pytest.raises(PartitionTakenOverError, match=rf"orders-1 from offset {before[1]} on"):
        stopped.commit()
    assert stored(lake) == dict.fromkeys(range(PARTITIONS), 25)
    stopped.commit()  # it has nothing any more


def test_what_it_still_holds_is_committed_when_some_was_taken_over(join: Join, lake: Lake, topic: Topic) -> None:
    reader = join()
    assert len(pulled(reader)) == 100
    leases = reader._member.groups.leases
    name = reader._member.part.partition(2)
    leases.release(reader._member.member_id, [name])
    with pytest.raises(PartitionTakenOverError, match="orders-2 from offset 0 on"):
        reader.commit()
    assert stored(lake) == {0: 25, 1: 25, 3: 25}
    wait_until(lambda: sorted(pulled(reader)) == list(range(2, 100, 4)))
    reader.commit()
    assert stored(lake) == dict.fromkeys(range(PARTITIONS), 25)


def test_positions_are_refused_where_deletes_were_missed_or_the_topic_is_another(lake: Lake) -> None:
    """C49 holds for positions, as they are cursors."""
    config = {"delete.retention.ms": 0}
    topic = lake.create_topic("states", config=config)
    topic.append([Record(b"a", b"1"), Record(b"b", b"2")])
    with topic.reader(group="g") as reader:
        assert len(list(reader)) == 2
        reader.commit()
    topic.append([Record(b"a", None), Record(b"c", b"3")])
    compact_without_spark(topic)
    (lag,) = lake.group("g").describe()
    assert lag.records_left is None and "removed deletes" in (lag.error or "")
    with topic.reader(group="g") as reader, pytest.raises(LogTruncatedError, match="removed deletes") as missed:
        reader.read_next()
    assert "lake.group('g').reset('states', to='earliest')" in missed.value.hint
    lake.group("g").reset("states", "earliest")
    with topic.reader(group="g") as reader:
        assert [record.key for record in reader] == [b"b", b"c"]
        reader.commit()
    topic.truncate(0, 3, below_compacted=True)
    with topic.reader(group="g") as reader, pytest.raises(LogTruncatedError, match="truncated below offset 4"):
        reader.read_next()
    lake.delete_topic("states")
    recreated = lake.create_topic("states")
    with recreated.reader(group="g") as reader, pytest.raises(LogTruncatedError, match="deleted and recreated"):
        reader.read_next()


def test_a_topic_that_is_recreated_under_a_reader_ends_it(join: Join, lake: Lake, topic: Topic) -> None:
    reader = join()
    pulled(reader)
    reader.commit()
    lake.delete_topic("orders")
    lake.create_topic("orders")
    with pytest.raises(LogTruncatedError, match="deleted and recreated"):
        pulled(reader)


def test_one_that_ends_at_the_log_ends_waits_for_what_one_holds_that_has_died(lake: Lake) -> None:
    """C58: a run after a kill reads everything, also where it is due no partition beside the one that died."""
    topic = lake.create_topic("single")
    topic.append([Record(b"k%d" % n, b"%d" % n) for n in range(9)])
    killed = topic.reader(group=Membership("g", LEASE_MS))
    assert killed.read_next() is not None
    stalled(killed)
    assert numbers(topic, LEASE_MS) == list(range(9))
    alive = topic.reader(group=Membership("g", LEASE_MS), follow=True)
    assert alive.read_next() is not None
    assert numbers(topic, 600_000) == [], "another one has it, and is there"
    alive.close()


def test_a_topic_that_was_recreated_with_fewer_partitions_before_it_had_any(lake: Lake, topic: Topic) -> None:
    with topic.reader(group="g", follow=True) as reader:
        lake.delete_topic("orders")
        lake.create_topic("orders").append([Record(b"k", b"7")])
        assert pulled(reader) == [7] and reader.partitions == (0,)


def test_compaction_between_commits_loses_nothing(join: Join, lake: Lake, topic: Topic) -> None:
    reader = join(compacted=True)
    got = [int(next(iter(reader)).value or b"") for _ in range(30)]
    reader.commit()
    put(topic, range(60))
    compact_without_spark(topic)
    left = [lag.records_left or 0 for lag in lake.group("g").describe()]
    rest = pulled(reader)
    reader.commit()
    assert all(position.compacted for position in Group(lake.warehouse, "g").positions())
    assert [lag.records_left for lag in lake.group("g").describe()] == [0] * PARTITIONS
    assert 0 < sum(left) <= len(rest) and {*got, *rest} == {*range(100)}


def test_a_database_that_is_gone_for_a_while(
    join: Join, lake: Lake, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps what it holds until its lease is over, commits when the database is back, and repeats nothing less."""
    monkeypatch.setattr(databases, "BUSY_S", 0.2)
    reader = join(lease_ms=600_000)
    got = pulled(reader)
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CoordinationError):
            reader.commit()
        other.execute("ROLLBACK")
    reader.commit()
    assert sorted(got) == list(range(100)) and stored(lake) == dict.fromkeys(range(PARTITIONS), 25)


def test_a_lease_that_ran_out_meanwhile_is_taken_again_and_the_rest_is_read_again(
    join: Join, lake: Lake, topic: Topic
) -> None:
    reader = join(lease_ms=1_000)
    got = pulled(reader)
    reader._member._used_ms -= 2**40  # its program hangs: it renews no more
    wait_until(lambda: not reader._member.holds(0))
    wait_until(lambda: len(pulled(reader)) > 0 or reader.partitions == (0, 1, 2, 3))
    with suppress(PartitionTakenOverError):
        reader.commit()
    wait_until(lambda: pulled(reader) == [] and len(reader.partitions) == PARTITIONS)
    with suppress(PartitionTakenOverError):
        reader.commit()
    assert sorted(got) == list(range(100))
    assert set(stored(lake)) == set(range(PARTITIONS))


def test_a_defect_in_its_thread_is_an_error_of_the_reader(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = join()

    def broken() -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(reader._member._keeper, "observe", broken)
    wait_until(lambda: reader._member._error is not None)
    with pytest.raises(lithify.LithifyError, match="a defect"):
        pulled(reader)


class TestResetAndDelete:
    def test_positions_move_to_ends_offsets_and_times(self, lake: Lake, topic: Topic) -> None:
        with topic.reader(group="g") as reader:
            assert len(list(reader)) == 100
            reader.commit()
        group = lake.group("g")
        for to, partition, after in (
            ("earliest", None, [0] * 4),
            (7, 2, [0, 0, 7, 0]),
            ("latest", 1, [0, 25, 7, 0]),
            (AtTime(2**50), None, [25] * 4),
        ):
            plan = group.plan_reset("orders", to, partition=partition)  # type: ignore[arg-type]
            assert group.reset("orders", to, partition=partition) == plan  # type: ignore[arg-type]
            assert [stored(lake)[p] for p in range(PARTITIONS)] == after
        for offset in (26, -1):
            with pytest.raises(OffsetOutOfRangeError):
                group.reset("orders", offset, partition=0)
        with pytest.raises(RefusedError, match="belongs to one log"):
            group.reset("orders", 7)
        with pytest.raises(RefusedError, match="no partition 9"):
            group.reset("orders", "latest", partition=9)

    def test_it_is_refused_while_a_member_is_there(self, lake: Lake, topic: Topic, join: Join) -> None:
        reader = join()
        pulled(reader)
        reader.commit()
        waited: list[int] = []
        for change in (
            lambda: lake.group("g").reset("orders", "earliest", tell=lambda _, ms: waited.append(ms)),
            lambda: lake.group("g").delete(),
        ):
            with pytest.raises(RefusedError, match="has members that read orders"):
                change()
        assert waited and waited[0] <= 30_000
        assert stored(lake) == dict.fromkeys(range(PARTITIONS), 25)

    def test_of_one_that_died_it_waits_for_the_lease_and_fences_it(self, lake: Lake, topic: Topic, join: Join) -> None:
        reader = join()
        pulled(reader)
        stalled(reader)
        begun = time.monotonic()
        with pytest.raises(UnknownGroupError):
            lake.group("g")
        reader.commit()
        lake.group("g").reset("orders", "earliest", lease_ms=LEASE_MS)
        assert time.monotonic() - begun >= LEASE_MS / 1000
        put(topic, range(100, 104))
        reader._assigned[0].committed = reader._assigned[0].stored = 0
        with pytest.raises(PartitionTakenOverError):
            reader.commit()
        assert stored(lake) == dict.fromkeys(range(PARTITIONS), 0)

    def test_a_deleted_group_is_unknown(self, lake: Lake, topic: Topic) -> None:
        with topic.reader(group="billing") as reader:
            reader.read_next()
            reader.commit()
        assert [(g.group, g.topics, g.partitions) for g in lake.groups()] == [("billing", ("orders",), 4)]
        with pytest.raises(UnknownGroupError, match="no group biling") as unknown:
            lake.group("biling")
        assert unknown.value.hint == "did you mean billing?"
        lake.delete_topic("orders")
        (report,) = lake.group("billing").delete()
        assert (report.topic, len(report.positions)) == ("orders", 4)
        assert lake.groups() == ()


def test_a_catalog_that_is_no_database_needs_a_url(
    lake: Lake, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lithify.api.wiring.database_of", lambda _: None)
    with pytest.raises(RefusedError, match="groups need an SQL database") as refused:
        topic.reader(group="g")
    assert "LITHIFY_COORDINATION_URL" in refused.value.hint
    url = f"sqlite:///{tmp_path}/groups.db"
    with topic.reader(group=Membership("g", coordination_url=url)) as reader:
        assert reader.read_next() is not None
        reader.commit()
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", url)
    assert [group.group for group in lake.groups()] == ["g"]


def test_its_positions_are_those_of_the_topic_that_was_copied(lake: Lake, topic: Topic) -> None:
    """As `kafka publish` translates them: under the name of the source, and only where the group can continue."""
    with topic.reader(group="g") as reader:
        assert len(list(reader)) == 100
        reader.commit()
    put_source(lake.warehouse.store, topic.state(), CopiedTopic("lost", ""))
    group = lake.group("g")
    assert group_offsets(topic, group) == tuple(GroupOffset("g", "lost", n, 25) for n in range(PARTITIONS))
    topic.truncate(partition=1, to=24)
    with pytest.raises(LogTruncatedError, match="orders-1: the log was truncated below offset 25"):
        group_offsets(topic, group)
