"""Consumes a topic of the lake alone: what there is, then what is appended.

It is the consumer of lake and cluster, with a cluster that has nothing. Records of the lake that were not read count as
deleted there, so that they are read from the lake, with the checks of a stored cursor (C7, C49).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path

from lithify.errors import LithifyError, SourceLostError, SourceWentBackError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.sources.ends import Ends
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.read.fetch import POLL_S
from lithify.service.snapshot.cursors import log_of
from lithify.service.snapshot.lake_and_live import LakeAndLive
from lithify.service.snapshot.live import Reached
from lithify.service.snapshot.newest import Newest
from lithify.service.snapshot.position import PositionStore
from lithify.service.snapshot.position_file import PositionFile

SYSTEM = "Lithify"


class LakeAlone(LakeAndLive):
    """`LakeAndLive` of a topic of the lake. Raises even if nothing is new, if it is another topic, or was cut."""

    def __init__(
        self, warehouse: Warehouse, name: TopicName, partitions: Sequence[int] | None, file: PositionStore | None
    ) -> None:
        live = LakeTopic(warehouse, name)
        super().__init__(warehouse, name, live, partitions, file)
        live.newest = Newest(warehouse, name, self._check_continues)

    def _check_continues(self, state: TopicState) -> None:
        """Raises `LogTruncatedError` if a log was read whole, and is another one that ends no later."""
        for partition, at in self._reading.reached.items():
            self._cursors.check_at_end(partition, state, at.offset)


class LakeConsumer(LakeAlone):
    """Iterate over it for the records of a topic, endlessly: the compacted ones, then new ones as they are appended.

    `partitions` are those to read, by default all. `position` is the path of a file: the consumer stores its cursors
    there and continues at them the next time. For one thread. Raises `UnknownTopicError`, and `LogTruncatedError`
    where it cannot continue, as it would miss a delete (C49) or the topic was recreated.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        name: TopicName,
        *,
        partitions: Sequence[int] | None = None,
        position: str | PathLike[str] | None = None,
    ) -> None:
        file = None if position is None else PositionFile(Path(position), str(name), str(name), SYSTEM)
        super().__init__(warehouse, name, partitions, file)


class LakeTopic:
    """See `snapshot.live.LiveSource`. Cursors tell whether the topic was recreated, so it needs no id."""

    system = SYSTEM
    topic_id = ""

    def __init__(self, warehouse: Warehouse, name: TopicName) -> None:
        self.topic = str(name)
        self._warehouse, self.newest = warehouse, Newest(warehouse, name)

    def check_same(self, known: str) -> None: ...

    def check_copy(self, state: TopicState) -> None: ...

    def partitions(self) -> int:
        return len(self.newest.load().logs)

    def begin(self, partition: int, log: LogState, at: Reached) -> Reached | None:
        return None

    def enter(self, partition: int, log: LogState, at: Reached) -> None: ...

    def learn(self, ends: Ends) -> None: ...

    def known_ends(self, places: Mapping[int, int]) -> Ends:
        return {}

    def ends(self, partitions: Collection[int]) -> Mapping[int, Reached]:
        state = self.newest.load()
        return {partition: Reached(log_of(state, partition).log_end_offset) for partition in partitions}

    def missing(self, partition: int, at: Reached) -> LithifyError | None:
        end = log_of(self.newest.recent(), partition).log_end_offset
        if at.offset > end:  # the consumer may have read a later version
            end = log_of(self.newest.load(), partition).log_end_offset
        if at.offset < end:
            return SourceLostError(f"{self.topic}-{partition}: records from {at.offset} on are in the lake")
        if at.offset > end:
            return SourceWentBackError(
                f"{self.topic}-{partition} ends at {end}, below offset {at.offset}, where this consumer continues",
                hint="start again, from the beginning",
            )
        return None

    def tail(self, starts: Mapping[int, Reached]) -> LakeTail:
        return LakeTail(self, self._warehouse, starts)

    def close(self) -> None: ...


class LakeTail:
    """See `snapshot.live.LiveTail`: it waits for appends, and has no records of its own."""

    is_idle = True

    def __init__(self, source: LakeTopic, warehouse: Warehouse, starts: Mapping[int, Reached]) -> None:
        self._source, self._clock, self.reached = source, warehouse.clock, dict(starts)

    def take(self, timeout_s: float) -> Sequence[Record]:
        """None within the timeout; raises `SourceLostError` once a log ends elsewhere: `missing` then says why."""
        deadline_ms = self._clock.monotonic_ms() + round(timeout_s * 1000)
        while not (moved := self._moved()) and (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            self._clock.sleep(min(left_ms / 1000, POLL_S))
        if moved:
            raise SourceLostError(f"{self._source.topic}-{moved[0]}: the log ends elsewhere")
        return ()

    def is_at_end(self, timeout_s: float) -> bool:
        return not self._moved()

    def close(self) -> None: ...

    def _moved(self) -> list[int]:
        ends = self._source.ends(self.reached)
        return [partition for partition, at in self.reached.items() if at.offset != ends[partition].offset]
