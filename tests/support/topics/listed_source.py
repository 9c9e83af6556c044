"""A source whose topics are lists of records: what an ingest does that is not Kafka's."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lithify.errors import LithifyError
from lithify.model.record import Record
from lithify.model.sources.source import SourceLog, SourceTopic
from lithify.model.staged import StagedLog
from lithify.model.topic.state import TopicState
from lithify.ports.source import Copying, OnBatch
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestedLog
from lithify.rules.lifecycle.copies.copy_continuation import CopyContinuation, copy_continuations

MARKERS = 2
"""Offsets behind the last record of a log that are no records."""


@dataclass(slots=True)
class ListedSource:
    """By topic and partition its records, with their offsets. They are written with the files of `warehouse`."""

    warehouse: Warehouse
    records: Mapping[str, Mapping[int, Sequence[Record]]]
    system: str = "Listed"
    where: str = "a list"
    look_interval_ms: int = 0
    is_silent: bool = False
    drops: None = None
    config: Mapping[str, str] | None = None

    def topics(self, pattern: str) -> tuple[str, ...]:
        return tuple(name for name in self.records if re.fullmatch(pattern, name))

    def topic(self, name: str) -> SourceTopic:
        return SourceTopic(name, f"id of {name}", tuple(self.records[name]))

    def logs(self, topic: SourceTopic) -> Mapping[int, SourceLog]:
        return {p: SourceLog(p, *_range(records)) for p, records in self.records[topic.name].items()}

    def epochs(self, topic: SourceTopic) -> Mapping[int, int | None]:
        return {}

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        return copy_continuations(copy, self.logs(topic))

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        return {}

    def progress(self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]) -> tuple[IngestedLog, ...]:
        return tuple(
            IngestedLog(p, copy.log(p).log_end_offset, log.end_offset, records.get(p, 0))
            for p, log in self.logs(topic).items()
        )

    def own_config(self, topic: str) -> Mapping[str, str] | None:
        return self.config

    def settings(self, topic: str, config: Mapping[str, object]) -> Mapping[str, object]:
        return config

    def stream(self, topic: str, starts: Mapping[int, int], run_id: str, on_batch: OnBatch) -> ListedStream:
        batch = ListedBatch(self, topic, starts)
        stream = ListedStream()
        try:
            if batch.rows():
                on_batch(batch)
        except LithifyError as error:
            stream.failure = error
        return stream


def _range(records: Sequence[Record]) -> tuple[int, int]:
    offsets = [record.offset for record in records if record.offset is not None]
    return (offsets[0], offsets[-1] + 1 + MARKERS) if offsets else (0, 0)


@dataclass(slots=True)
class ListedStream:
    """Batches that were taken at once."""

    is_active: bool = False
    failure: LithifyError | None = None

    def stop(self) -> None:
        """There is nothing under way."""

    def end(self) -> LithifyError | None:
        return self.failure


@dataclass(frozen=True, slots=True)
class ListedBatch:
    """What a topic has from these offsets on."""

    source: ListedSource
    topic: str
    starts: Mapping[int, int]

    def rows(self) -> list[Record]:
        logs = self.source.records[self.topic]
        return [
            r for p, records in logs.items() for r in records if r.offset is not None and r.offset >= self.starts[p]
        ]

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return {}

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        warehouse, name = self.source.warehouse, copying.topic.name
        state = warehouse.store.load(name)
        arrived = warehouse.files.receive(state, self.rows(), now_ms=0, keep_offsets=True)
        return tuple(
            StagedLog(name, state.identity, p, warehouse.files.write(state, a, 0, copying.run_id), a.last_timestamp_ms)
            for p, a in sorted(arrived.items())
        )

    def ends(self) -> Mapping[int, int]:
        return {log.partition: log.end_offset for log in self.source.logs(self.source.topic(self.topic)).values()}
