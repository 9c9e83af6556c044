"""What an ingest needs of the system whose topics it copies.

    Source ──► topics, ids, offsets, settings
           └─► a stream for each topic ──► batches, each of which copies its records into segments

A batch is copied where its records are read, in tasks. The service commits what they wrote, so a source
knows nothing of versions, and the service nothing of clients and sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lithify.errors import LithifyError
from lithify.model.sources.ends import StableEnds
from lithify.model.sources.source import SourcePosition, SourceTopic
from lithify.model.staged import Destination, StagedLog
from lithify.model.topic.state import TopicState
from lithify.reports.ingest import IngestedEntries, IngestedLog
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.lifecycle.copies.copy_continuation import CopyContinuation
from lithify.rules.reading.pieces import Piece


class StopAsked(Exception):  # noqa: N818 - no error
    """A wait was given up, since everything is to end."""


@dataclass(frozen=True, slots=True)
class Copying:
    """What tasks need to know. `topic` is as of the version that the batch is to be committed on."""

    topic: Destination
    access: Any
    """`SegmentFiles.access`."""
    run_id: str
    drops_keyless: bool


class SourceBatch(Protocol):
    """Records of one topic on their way into the lake."""

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        """Writes them, in offset order, log by log. Raises the error of the first task that failed."""
        ...

    def ends(self) -> Mapping[int, SourcePosition]:
        """By partition, the position up to which the batch, once copied, has read the source. Raises `EngineError`."""
        ...

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        """By partition how many entries, once copied, were kept whole as their producers wrote them damaged (C74).

        With the first of them, as LEDGER:ENTRY.
        """
        ...


@dataclass(frozen=True, slots=True)
class CopyKeys:
    """By partition where the keys of a copy are, as readers of compacted data find them, and which record wins."""

    pieces: Mapping[int, tuple[Piece, ...]]
    rules: Mapping[int, SurvivorRules]

    @property
    def oldest(self) -> Mapping[int, int]:
        """By partition the first offset that has a record, or had one; none of a log without records."""
        return {
            p: max(pieces[0].start_offset, pieces[0].segment.base_offset) for p, pieces in self.pieces.items() if pieces
        }


class Resync(SourceBatch, Protocol):
    """A batch that also deletes the keys that only the copy has."""

    @property
    def deleted(self) -> Mapping[int, int]:
        """By partition how many, once it is copied."""
        ...


OnBatch = Callable[[SourceBatch], None]


class SourceStream(Protocol):
    """Batches of one topic, one after the other, until there are no more or it is stopped."""

    @property
    def is_active(self) -> bool: ...

    def stop(self) -> None:
        """Ends it, in bounded time. A batch under way is given up, or committed if it has got that far."""
        ...

    def end(self) -> LithifyError | None:
        """Why it ended, None if all went well. What it left behind is deleted."""
        ...


class DropsDeletes(Protocol):
    """What is asked of a system whose compaction drops deletes that a copy has yet to read (C71)."""

    def stable_ends(self, topic: SourceTopic) -> StableEnds:
        """What the topic has now, and how it treats deletes. Raises `BrokerError`."""
        ...

    def resync(self, topic: SourceTopic, starts: Mapping[int, int], ends: Mapping[int, int], keys: CopyKeys) -> Resync:
        """A batch of [starts, ends), which deletes the keys that only the copy has."""
        ...


class Source(Protocol):
    """A cluster. Every call that waits raises `StopAsked` once the ingest is to end."""

    @property
    def system(self) -> str:
        """What people call it, such as `Kafka`."""
        ...

    @property
    def where(self) -> str:
        """Its address, for messages."""
        ...

    @property
    def is_silent(self) -> bool:
        """Whether it does not answer right now; False for a source that says itself that it waits.

        It is asked for that, and waited for a second at most.
        """
        ...

    @property
    def drops(self) -> DropsDeletes | None:
        """None: its compaction removes nothing that a copy has yet to read."""
        ...

    @property
    def look_interval_ms(self) -> int:
        """How often to look for new topics."""
        ...

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Names of the topics that a regular expression matches as a whole. Raises `BrokerError`."""
        ...

    def topic(self, name: str) -> SourceTopic:
        """Raises `UnknownSourceError` or `BrokerError`."""
        ...

    def epochs(self, topic: SourceTopic) -> Mapping[int, int | None]:
        """By partition the leader epoch, in which a log loses no records; none where there are no epochs.

        None where it is not known. Raises `BrokerError`.
        """
        ...

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        """By partition, how its copy continues. Raises `RefusedError` for a topic that cannot be a copy of it."""
        ...

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        """Of partitions that a batch was read from, how `copy`, without the batch, continues now.

        What is gone is told of those whose readers pass over it; the readers of others say so themselves.
        """
        ...

    def progress(
        self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]
    ) -> tuple[IngestedLog | IngestedEntries, ...]:
        """The logs of the copy after a batch that has appended so many `records` to them, by partition."""
        ...

    def settings(self, topic: str, config: Mapping[str, object]) -> Mapping[str, object]:
        """The settings of its own that a copy of the topic is created with; `config` goes over them.

        Raises what shows that a new copy would be refused, so that none is created.
        """
        ...

    def own_config(self, topic: str) -> Mapping[str, str] | None:
        """The settings that were set on the topic itself, without defaults; None where they are not known."""
        ...

    def stream(
        self, topic: str, starts: Mapping[int, SourcePosition | None], run_id: str, on_batch: OnBatch
    ) -> SourceStream:
        """Starts to read a topic where copies continue. Raises `ConnectorError` or `BrokerError`."""
        ...
