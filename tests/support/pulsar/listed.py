"""A Pulsar topic that is lists of entries, as the source of an ingest: what is not the broker's, without a broker."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lithify.errors import LithifyError
from lithify.model.message import MessageId
from lithify.model.settings.topic_settings import preset
from lithify.model.sources.source import SourcePosition, SourceTopic
from lithify.model.staged import StagedLog
from lithify.model.topic.state import TopicState
from lithify.ports.source import Copying, OnBatch
from lithify.ports.store import Warehouse
from lithify.pulsar.columns import Damage, messages_of
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.lake.entry_continuation import continuation
from lithify.pulsar.lake.records import records_of
from lithify.reports.ingest import IngestedEntries
from lithify.rules.lifecycle.copies.copy_continuation import CopyContinuation


@dataclass(slots=True)
class ListedEntries:
    """The entries of one topic by partition, in order; a batch has two of each. `warehouse` writes them."""

    warehouse: Warehouse
    entries: Mapping[int, Sequence[RawEntry]]
    system: str = "Pulsar"
    where: str = "a list"
    look_interval_ms: int = 0
    is_silent: bool = False
    drops: None = None
    skip_damaged: bool = False

    def topics(self, pattern: str) -> tuple[str, ...]:
        raise NotImplementedError(pattern)

    def topic(self, name: str) -> SourceTopic:
        return SourceTopic(name, "1", tuple(self.entries))

    def last(self, partition: int) -> MessageId:
        return MessageId(*self.entries[partition][-1][:2])

    def epochs(self, topic: SourceTopic) -> Mapping[int, int | None]:
        return {}

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        return {p: continuation(copy.log(p).copied_to, None, self.last(p)) for p in topic.partitions}

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        return {}

    def progress(self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]) -> tuple[IngestedEntries, ...]:
        return tuple(
            IngestedEntries(p, copy.log(p).log_end_offset, str(copy.log(p).copied_to), None, n, None)
            for p, n in records.items()
        )

    def own_config(self, topic: str) -> None:
        """Not known."""

    def settings(self, topic: str, config: Mapping[str, object]) -> Mapping[str, object]:
        return {**preset("pulsar"), **config, "message.ids": "pulsar"}

    def stream(
        self, topic: str, starts: Mapping[int, SourcePosition | None], run_id: str, on_batch: OnBatch
    ) -> EntriesTaken:
        stream, reached = EntriesTaken(), dict(starts)
        try:
            while batch := self.batch(topic, reached):
                on_batch(batch)
                reached.update(batch.ends())
        except LithifyError as error:
            stream.failure = error
        return stream

    def batch(self, topic: str, reached: Mapping[int, SourcePosition | None]) -> EntriesBatch | None:
        parts = {p: tuple(self.behind(p, at))[:2] for p, at in reached.items()}
        parts = {p: entries for p, entries in parts.items() if entries}
        return EntriesBatch(self, parts, reached) if parts else None

    def behind(self, partition: int, at: SourcePosition | None) -> Iterator[RawEntry]:
        for entry in self.entries[partition]:
            if not isinstance(at, MessageId) or not at.covers(MessageId(entry.ledger, entry.entry)):
                yield entry


@dataclass(slots=True)
class EntriesTaken:
    """All batches, taken at once."""

    is_active: bool = False
    failure: LithifyError | None = field(default=None)

    def stop(self) -> None:
        """There is nothing under way."""

    def end(self) -> LithifyError | None:
        return self.failure


@dataclass(frozen=True, slots=True)
class EntriesBatch:
    """A few entries of each partition."""

    source: ListedEntries
    parts: Mapping[int, Sequence[RawEntry]]
    after: Mapping[int, SourcePosition | None]
    damage: dict[int, Damage] = field(default_factory=dict)

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return {p: (damage.count, damage.named) for p, damage in self.damage.items() if damage.count}

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        warehouse, name = self.source.warehouse, copying.topic.name
        state, staged = warehouse.store.load(name), []
        for partition, entries in self.parts.items():
            after = self.after[partition]
            at = after if isinstance(after, MessageId) else None
            skipped = self.damage.setdefault(partition, Damage()) if self.source.skip_damaged else None
            tables = [records_of(messages, partition, at, skipped) for messages in messages_of(entries, skipped)]
            arrived = warehouse.files.receive(state, pa.concat_tables(tables), now_ms=0, keep_offsets=False)
            for p, a in arrived.items():
                segments = warehouse.files.write(state, a, state.log(p).log_end_offset, copying.run_id)
                staged.append(StagedLog(name, state.identity, p, segments, a.last_timestamp_ms, a.message_ids))
        return tuple(staged)

    def ends(self) -> Mapping[int, SourcePosition]:
        return {p: MessageId(*entries[-1][:2]) for p, entries in self.parts.items()}
