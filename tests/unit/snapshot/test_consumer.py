"""A consumer of lake and cluster, over a cluster that is a list: what it does where the two meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from lithify.api.lake import open_lake
from lithify.errors import LithifyError, PolicyError, SourceLostError
from lithify.model.record import Record
from lithify.model.sources.ends import Ends, KnownEnds, SourceEnd
from lithify.model.sources.origin import PROMOTED
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.copies.ownership import check_still_copy
from lithify.service.snapshot.lake_and_live import STORE_MS, LakeAndLive
from lithify.service.snapshot.live import Reached
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import compact_without_spark


@dataclass
class ListedTail:
    source: ListedSource
    reached: dict[int, Reached]
    is_idle: bool = True

    def take(self, timeout_s: float) -> Sequence[Record]:
        at = self.reached[0]
        if (lost := self.source.missing(0, at)) is not None:
            raise lost
        some = self.source.records[at.offset : at.offset + 2]
        if not some:
            self.source.clock.sleep(timeout_s)
        self.reached = {0: Reached(at.offset + len(some))}
        return some

    def is_at_end(self, timeout_s: float) -> bool:
        return self.reached[0].has(self.source.ends([0])[0])

    def close(self) -> None: ...


@dataclass
class ListedSource:
    """One partition; records below `start` were deleted."""

    clock: FakeClock
    records: list[Record] = field(default_factory=list)
    start: int = 0
    system = "List"
    topic = "t"
    topic_id = ""
    closed: bool = False

    def add(self, count: int) -> list[Record]:
        more = [Record(b"k%d" % (n % 3), b"%d" % n, 7, partition=0, offset=n) for n in range(len(self.records), 99)]
        self.records += more[:count]
        return more[:count]

    def check_same(self, known: str) -> None: ...

    def check_copy(self, state: TopicState) -> None:
        check_still_copy(state)

    def partitions(self) -> int:
        return 1

    def begin(self, partition: int, log: LogState, at: Reached) -> Reached | None:
        return None

    def enter(self, partition: int, log: LogState, at: Reached) -> None: ...

    def ends(self, partitions: Collection[int]) -> Mapping[int, Reached]:
        return {partition: Reached(len(self.records)) for partition in partitions}

    def learn(self, ends: Ends) -> None:
        self.learned = ends

    def known_ends(self, places: Mapping[int, int]) -> Ends:
        return {p: KnownEnds((SourceEnd(place, 1_000, 50),)) for p, place in places.items()}

    def missing(self, partition: int, at: Reached) -> LithifyError | None:
        return SourceLostError(f"starts at {self.start}") if at.offset < self.start else None

    def tail(self, starts: Mapping[int, Reached]) -> ListedTail:
        return ListedTail(self, dict(starts))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def source():
    return ListedSource(FakeClock(1_000))


@pytest.fixture
def topic(tmp_path, source):
    lake = open_lake(str(tmp_path / "lake"))
    lake = replace(lake, warehouse=replace(lake.warehouse, clock=source.clock))
    return lake.create_topic("t", like="pulsar")


def offsets(consumer: LakeAndLive) -> list[int | None]:
    found = []
    while not consumer.caught_up():
        if (record := consumer.poll()) is not None:
            found.append(record.offset)
    return found


def test_the_cluster_goes_on_where_the_lake_ends(topic, source):
    topic.append(source.add(6), keep_offsets=True)
    compact_without_spark(topic)
    source.add(3)
    with LakeAndLive(topic.warehouse, topic.topic_name, source, None, None) as consumer:
        assert offsets(consumer) == [3, 4, 5, 6, 7, 8]
        assert consumer.positions() == {0: 8}  # the last one may not be processed yet
    assert source.closed


def test_what_was_read_ahead_was_not_returned(topic, source):
    """A check of the end reads on: who fills a table up to some ends is not through before it has got that."""
    with LakeAndLive(topic.warehouse, topic.topic_name, source, None, None) as consumer:
        assert consumer.caught_up()
        source.add(2)
        ends = consumer.ends()
        assert not consumer.caught_up()
        assert not consumer.has_read(ends)
        assert [record.offset for record in consumer.take()] == [0, 1]
        assert consumer.has_read(ends)


def test_what_the_cluster_deletes_under_a_live_consumer_is_read_in_the_lake(topic, source):
    topic.append(source.add(2), keep_offsets=True)
    with LakeAndLive(topic.warehouse, topic.topic_name, source, None, None) as consumer:
        assert offsets(consumer) == [0, 1]
        topic.append(source.add(4), keep_offsets=True)
        source.start = 5
        source.add(2)
        assert offsets(consumer) == [2, 3, 4, 5, 6, 7]


def test_a_consumer_that_is_live_hears_of_a_promotion(topic, source):
    """C70."""
    topic.append(source.add(2), keep_offsets=True)
    with LakeAndLive(topic.warehouse, topic.topic_name, source, None, None) as consumer:
        assert offsets(consumer) == [0, 1]
        topic.warehouse.store.commit(topic.state(), TopicEdit("run", 1, {}, origin=PROMOTED))
        source.clock.sleep(2 * STORE_MS / 1000)
        for _ in range(2):
            with pytest.raises(PolicyError, match="it was promoted"):
                consumer.poll(STORE_MS / 1000)


def test_what_neither_has_is_an_error_each_time(topic, source):
    topic.append(source.add(2), keep_offsets=True)
    with LakeAndLive(topic.warehouse, topic.topic_name, source, None, None) as consumer:
        assert offsets(consumer) == [0, 1]
        topic.append(source.add(2), keep_offsets=True)
        source.add(4)
        source.start = 6
        assert [consumer.poll().offset, consumer.poll().offset] == [2, 3]
        for _ in range(2):
            with pytest.raises(SourceLostError, match="starts at 6"):
                consumer.poll()
        source.start = 4
        assert offsets(consumer) == [4, 5, 6, 7]


def test_a_consumer_that_cannot_begin_closes_its_source(topic, source):
    with pytest.raises(LithifyError, match=r"List's t has 1 partition, not \[3\]"):
        LakeAndLive(topic.warehouse, topic.topic_name, source, [3], None)
    assert source.closed
