"""The cluster behind a copy, as a consumer of both needs it. Two implement it: Kafka's and Pulsar's.

LiveSource    one topic there: what it has, and whether that is still what the copy continues with
LiveTail      its records as they arrive, from where the lake ended
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, Self

from lithify.errors import LithifyError, SourceWentBackError, UnknownSourceError
from lithify.model.message import MessageId
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.units import plural
from lithify.model.sources.ends import Ends
from lithify.model.sources.source import ComparedRecord, EpochAt, as_read
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState

COPY_AGAIN: Final = "copy it into a new topic of the lake, and start there"
"""The hint if a consumer cannot continue in the topic that the cluster has now."""


class Reached(NamedTuple):
    """Everything of a log below `offset` was read; of a copy with message ids, everything up to `message` too.

    A copy has Kafka's offsets. Pulsar does not have any: there `offset` counts on from the copy's log end. `epoch`
    is Kafka's, of that offset or, if the records do not have it, of an earlier one, and `last` the last record (C72).
    """

    offset: int
    message: MessageId | None = None
    epoch: EpochAt | None = None
    last: ComparedRecord | None = None

    @classmethod
    def by(cls, record: Record, epoch: EpochAt | None = None) -> Self:
        """Where a consumer is that has read this record, and has others up to `epoch` or not that far."""
        assert record.offset is not None
        end = record.offset + 1
        if record.envelope is not None:
            return cls(end, record.envelope.id)
        last = as_read(record.offset, record.timestamp or 0, record.key, record.value)
        return cls(end, None, None if epoch is None else epoch.below(end), last)

    def has(self, end: Reached) -> bool:
        """Whether everything up to `end` was read; an end with an id is one of Pulsar, whatever its offset."""
        if end.message is not None:
            return self.message is not None and self.message.covers(end.message)
        return self.offset >= end.offset


class LiveTail(Protocol):
    """Reads all partitions at once, endlessly. Raises `BrokerError` while the cluster is away."""

    @property
    def reached(self) -> Mapping[int, Reached]:
        """By partition, behind the last record taken."""

    @property
    def is_idle(self) -> bool:
        """Whether all fetched records were taken; `reached` may then be beyond the last record."""

    def take(self, timeout_s: float) -> Sequence[Record]:
        """The next records, at least one if any arrived within the timeout."""

    def is_at_end(self, timeout_s: float) -> bool:
        """Whether all records there were read; also False for an unknown result after the timeout."""

    def close(self) -> None: ...


class LiveSource(Protocol):
    """One topic of a cluster. Calls raise `BrokerError` and `UnknownSourceError`."""

    @property
    def system(self) -> str:
        """Its name in errors."""

    @property
    def topic(self) -> str:
        """Its name there."""

    @property
    def topic_id(self) -> str:
        """Another one once the topic was recreated; empty if the cluster has none. As it was at first."""

    def check_same(self, known: str) -> None:
        """Raises `SourceWentBackError` if the topic had another id then, empty for any, or has one now."""

    def check_copy(self, state: TopicState) -> None:
        """Raises `PolicyError` if the topic in the lake is not a copy of it any more."""

    def partitions(self) -> int: ...

    def begin(self, partition: int, log: LogState, at: Reached) -> Reached | None:
        """Where to begin in the cluster if neither lake nor consumer has anything of the partition; else None.

        Raises `SourceLostError` or `SourceWentBackError` unless the cluster has all that comes after both, and has
        not lost what was read (C72).
        """

    def enter(self, partition: int, log: LogState, at: Reached) -> None:
        """Before the copy is read from there on. Raises `SourceLostError` if deletes may be missing in it (C71)."""

    def learn(self, ends: Ends) -> None:
        """Takes what this consumer has stored of its ends (C71)."""

    def known_ends(self, places: Mapping[int, int]) -> Ends:
        """What is known of its ends that a consumer needs at these offsets; nothing where no deletes are dropped."""

    def ends(self, partitions: Collection[int]) -> Mapping[int, Reached]:
        """What the partitions have now."""

    def missing(self, partition: int, at: Reached) -> LithifyError | None:
        """Why the cluster cannot continue there: `SourceLostError` or `SourceWentBackError`.

        Raises `SourceWentBackError` if it has lost what was read (C72): the lake does not help then.
        """

    def tail(self, starts: Mapping[int, Reached]) -> LiveTail: ...

    def close(self) -> None: ...


def check_same(system: str, topic: str, known: str, actual: str) -> None:
    """Raises `SourceWentBackError` if the cluster's id of the topic is not the `known` one; empty: it is not known."""
    if known and actual and actual != known:
        raise SourceWentBackError(
            f"{system}'s {topic} was deleted and recreated: its records belong to another topic than the records "
            "before",
            hint=COPY_AGAIN,
        )


def chosen_partitions(live: LiveSource, wanted: Sequence[int] | None, name: TopicName, in_lake: int) -> Sequence[int]:
    """The partitions to read, None for all. Raises `UnknownSourceError` if the cluster has fewer."""
    there = live.partitions()
    least = in_lake if wanted is None else max(wanted, default=-1) + 1
    if there < least or (wanted is not None and min(wanted, default=0) < 0):
        raise UnknownSourceError(
            f"{live.system}'s {live.topic} has {plural(there, 'partition')}, "
            + (f"but {name} in the lake has {in_lake}" if wanted is None else f"not {sorted(wanted)}"),
            hint="check that it is the same topic" if wanted is None else "use numbers from 0",
        )
    return range(there) if wanted is None else sorted(set(wanted))
