"""Streams one Pulsar topic in batches that are copied and committed one after the other.

    look: last ids of all partitions ─► a batch up to them ─► tasks ─► commit ─► acknowledged ─► next look

Only the ids in the copy's state say how far it is (C52). The durable subscription follows the commits, so that brokers
keep what is not copied yet, and no more; that an acknowledgement is lost costs nothing but their space.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from lithify.errors import SourceWentBackError
from lithify.model.message import MessageId
from lithify.model.sources.source import SourcePosition
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying, OnBatch
from lithify.pulsar.client import ClientConfig
from lithify.spark.batch_thread import BatchThread
from lithify.spark.pulsar.entry_ranges import EntryRange, Limits, copy_ranges

Positions = Mapping[int, SourcePosition | None]


@dataclass(frozen=True, slots=True)
class Look:
    """What was there: by partition, its name and the id of its last message. `ms` is just before, in epoch ms."""

    ms: int
    last_ids: Mapping[int, tuple[str, MessageId | None]]

    def has_all(self, partition: int, copied_to: MessageId | None) -> bool:
        """Whether a copy up to there has everything of the partition."""
        _, last = self.last_ids[partition]
        return last is None or (copied_to is not None and copied_to.covers(MessageId(*last.place)))

    def check_not_before(self, copied: Mapping[int, MessageId]) -> None:
        """Raises `SourceWentBackError` for a topic that ends before its copy, so that it would seem to have nothing."""
        for partition, (name, last) in self.last_ids.items():
            copied_to = copied.get(partition)
            if last is not None and copied_to is not None and last.place < copied_to.place:
                raise SourceWentBackError(
                    f"Pulsar's {name} ends at {last} now, before {copied_to}, where the copy ends, as after a restore",
                    hint="ingest it into another topic, with --into",
                )


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What to read: where the copies are, and in which batches. `job` names it."""

    config: ClientConfig
    starts: Positions
    job: str
    continuous: bool
    interval_ms: int
    limits: Limits
    look: Callable[[], Look]
    acknowledge: Callable[[Look, Mapping[int, MessageId]], None]
    """Tells the cluster, after each look, up to which id the copies are committed."""
    published: Mapping[int, int] = field(default_factory=dict)
    """By partition when the copy's message at its start was published, where that can be compared."""


@dataclass(slots=True)
class EntryBatch:
    """Ranges of entries, one for each partition that has new ones."""

    session: SparkSession
    config: ClientConfig
    ranges: tuple[EntryRange, ...]
    limits: Limits
    job: str
    reached: dict[int, MessageId] = field(default_factory=dict)
    published: dict[int, int | None] = field(default_factory=dict)
    """By partition, when the message there was."""
    kept_whole: dict[int, tuple[int, Sequence[str]]] = field(default_factory=dict)

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        """See `copy_ranges`."""
        self.session.sparkContext.setJobGroup(self.job, "lithify pulsar ingest", interruptOnCancel=True)
        copied = copy_ranges(self.session, self.config, self.ranges, copying, self.limits)
        self.reached = {one.partition: one.reached for one in copied}
        self.published = {one.partition: one.published_ms for one in copied}
        self.kept_whole = {one.partition: (one.damage.count, one.damage.named) for one in copied if one.damage.count}
        return tuple(log for one in copied for log in one.logs)

    def ends(self) -> Mapping[int, SourcePosition]:
        """The ids up to which the tasks have read."""
        return dict(self.reached)

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return self.kept_whole


class EntryStream(BatchThread):
    """Calls `on_batch` for each batch. With `continuous` it does so until it is stopped."""

    def __init__(self, session: SparkSession, plan: StreamPlan, on_batch: OnBatch) -> None:
        super().__init__(session, plan.job)
        self._plan, self._on_batch = plan, on_batch
        self._positions = {p: start for p, start in plan.starts.items() if isinstance(start, MessageId)}
        self._published: dict[int, int | None] = dict(plan.published)

    def _copy(self) -> None:
        plan = self._plan
        target = None if plan.continuous else plan.look()
        while not self._stopping.is_set():
            took = self._step(plan.look() if target is None else target)
            if not took and not plan.continuous:
                return
            if not took:
                self._stopping.wait(plan.interval_ms / 1000)

    def _step(self, look: Look) -> bool:
        """Copies up to what was there; False if there was nothing to copy. Raises `SourceWentBackError`."""
        look.check_not_before(self._positions)
        ranges = tuple(
            EntryRange(p, name, self._positions.get(p), MessageId(*last.place), self._published.get(p))
            for p, (name, last) in sorted(look.last_ids.items())
            if last is not None and not look.has_all(p, self._positions.get(p))
        )
        if ranges:
            batch = EntryBatch(self._session, self._plan.config, ranges, self._plan.limits, self._plan.job)
            self._on_batch(batch)
            self._positions.update(batch.reached)
            self._published.update(batch.published)
        self._plan.acknowledge(look, self._positions)
        return bool(ranges)
