"""The copy of one topic by one ingest: where it continues, and its batches, each of which is one commit (C1, C6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lithify.errors import (
    LithifyError,
    RefusedError,
    SourceLostError,
    SourceWentBackError,
    TopicExistsError,
    UnknownTopicError,
)
from lithify.model.message import DAMAGED_NAMED_AT_MOST
from lithify.model.names import LogId, TopicName, TopicReference
from lithify.model.segment import volume_of
from lithify.model.sources.copied_topic import CopiedTopic, Hole, IdHole
from lithify.model.sources.origin import CopyOf
from lithify.model.sources.source import IngestRequest, SourcePosition, SourceTopic
from lithify.model.staged import Destination, StagedLog, by_partition, segments_of_parts
from lithify.model.topic.state import TopicState
from lithify.ports.source import Copying, Source, SourceBatch
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestBatch, IngestNote, IngestReport, TellBatch
from lithify.reports.pulsar.damaged import kept_whole
from lithify.rules.lifecycle.copies import copy_continuation
from lithify.rules.lifecycle.copies.copy_continuation import (
    CopyContinuation,
    CopyContinues,
    NeverCopied,
    SourceWentBack,
)
from lithify.rules.lifecycle.copies.ownership import check_still_copy
from lithify.rules.lifecycle.replicas import check_own
from lithify.service.change.alter import alter
from lithify.service.creation import create_topic
from lithify.service.ingest.commit_copied import Begun, Copied, Reached, commit_copied
from lithify.service.ingest.known_sources import check_cluster, known_source, remember
from lithify.service.ingest.losses import begin_of, check_none_gone, cut_error, gone_of, hole_of
from lithify.service.ingest.marking import check_marked, marked
from lithify.service.ingest.narration import Narration
from lithify.service.ingest.resync import resync
from lithify.service.ingest.same_log import SameLog
from lithify.service.ingest.source_watch import SourceWatch

NOT_BEGUN = Reached("", {})


@dataclass(slots=True)
class TopicIngest:
    """The copy of one topic by one ingest."""

    warehouse: Warehouse
    source: Source
    request: IngestRequest
    topic: str
    """Its name in the source."""
    name: TopicName
    """Its name in the lake."""
    tell: TellBatch
    narration: Narration
    started_ms: int
    batches: int = 0
    records: int = 0
    damaged_entries: int = 0
    damaged_named: tuple[str, ...] = ()
    holes: tuple[Hole | IdHole, ...] = ()
    topic_id: str = ""
    cluster_id: str = ""
    resynced: bool = False
    deleted_keys: int = 0
    reached: Reached = NOT_BEGUN
    watch: SourceWatch | None = None
    same: SameLog = field(init=False)

    def __post_init__(self) -> None:
        self.same = SameLog(self.source)

    def prepare(self) -> Mapping[int, SourcePosition | None]:
        """Creates the topic in the lake if it is missing; returns, by partition, where to continue.

        Raises `UnknownSourceError`, `SourceWentBackError`, `SourceLostError`, or what creating and altering
        a topic raises.
        """
        time_ms = self.warehouse.clock.now_ms()
        source_topic = self.source.topic(self.topic)
        self.topic_id, self.cluster_id = source_topic.topic_id, source_topic.cluster_id
        state = self._state(source_topic)
        check_own(state)
        is_known = self._is_known(state, source_topic)
        state = self._with_partitions(marked(self.warehouse, state, self._origin, known=is_known), source_topic)
        self.same.begin(source_topic)  # before it is asked whether it was cut
        starts = {p: self._start(state, p, how) for p, how in self.source.continuations(source_topic, state).items()}
        self._remember(state)
        check_marked(state, self._origin)
        drops = self.source.drops if self.request.resyncs and not self.resynced else None
        accepts = self.request.accepts_loss
        self.watch = SourceWatch(self.warehouse, self.source, source_topic, state, accepts, resyncs=drops is not None)
        self.watch.begin(time_ms, starts, self.narration.note)
        self.reached = Reached.of(state)
        known = {p: start for p, start in starts.items() if start is not None}
        begun: Begun = {} if drops is not None else self.watch.begun  # a resync begins with its batch
        state = self._commit((), known, self.warehouse.clock.new_id(), begun) or state
        self.watch.store_begin()
        logs = self.source.progress(source_topic, state, {})
        self.narration.begins(self.topic, str(self.name), logs)
        if all(log.lag == 0 for log in logs):  # else its next commit tells that the warehouse takes any
            self.narration.warehouse.answers()
        if drops is not None:
            self.deleted_keys = resync(drops, self.watch, self.take, self.narration.note)
            self.resynced = True
            return dict(self.watch.read_to)
        return starts

    def _start(self, state: TopicState, partition: int, how: CopyContinuation) -> SourcePosition | None:
        log = LogId(self.name, partition)
        match how:
            case CopyContinues(position):
                return position
            case NeverCopied(_, end) if self.request.accepts_loss:
                hole = hole_of(partition, how)
                self.holes = (*(other for other in self.holes if begin_of(other) != begin_of(hole)), hole)
                return end
            case NeverCopied(start, end):
                why = f"{log}: {self._theirs} starts at {end}, but the copy ends at {start}: {gone_of(how)}"
                raise SourceLostError(why, hint="continue at its start with --accept-loss, which stores the range")
            case SourceWentBack(log_end, source_end):
                raise SourceWentBackError(
                    f"{log}: {self._theirs} ends at {source_end}, below the {log_end} of the copy",
                    hint="ingest it into another topic, or cut this one: it was recreated or truncated",
                )
            case copy_continuation.SourceWasCut():
                raise cut_error(state, partition, how, self._theirs)

    def take(self, batch: SourceBatch) -> None:
        """Copies and commits one batch; afterwards the logs end where the batch was read to.

        Raises `ConflictError`, `InvalidRecordError`, `SourceWentBackError`, `SourceLostError`, or what a commit
        raises.
        """
        clock = self.warehouse.clock
        begun_ms, run_id = clock.now_ms(), clock.new_id()
        source_topic = self.source.topic(self.topic)
        state = self.warehouse.store.load(self.name)
        self.reached.check(state, state.partitions)  # first: do not alter a recreated topic
        self._check_id(source_topic.topic_id)  # nor one for a recreated source
        if not self.batches:
            self._known(state)  # an ingest of another topic into it may have begun in the same moment
        state = self._with_partitions(state, source_topic)
        copying = Copying(Destination.of(state), self.warehouse.files.access, run_id, self.request.drops_keyless)
        self._watched.before_read(source_topic, state)
        self.same.check(source_topic)
        copied = batch.copy(copying)
        self.same.check(source_topic)
        # After the read: the topic may have been recreated before it, and the batch would be of the new one.
        self._check_id(self.source.topic(self.topic).topic_id)
        self._check_whole(source_topic, state, batch)
        ends, kept = batch.ends(), batch.damaged()
        self._watched.after_read(ends)
        state = self._commit(copied, ends, run_id, self._watched.begun) or state
        self._watched.committed(ends)
        self.narration.warehouse.answers()
        counts = {p: volume_of(segments_of_parts(parts)).records for p, parts in by_partition(copied).items()}
        self.batches += 1
        self.records += sum(counts.values())
        self._tell_damaged(kept)
        logs = self.source.progress(source_topic, state, counts)
        batch_report = IngestBatch(str(self.name), self.topic, state.version, logs, clock.now_ms() - begun_ms)
        self.tell(batch_report)
        self.narration.copied(batch_report)
        self.look()

    def _tell_damaged(self, kept: Mapping[int, tuple[int, Sequence[str]]]) -> None:
        for partition, (count, named) in sorted(kept.items()):
            self.damaged_entries += count
            self.damaged_named = (*self.damaged_named, *named)[:DAMAGED_NAMED_AT_MOST]
            text = kept_whole(str(LogId(self.name, partition)), count, named)
            self.narration.note(IngestNote("damaged", text, self.topic, str(self.name)))

    def look(self) -> None:
        """Between batches, and while there are none: see `SourceWatch.look`."""
        if self.watch is not None:
            self.watch.look()

    @property
    def _watched(self) -> SourceWatch:
        assert self.watch is not None  # `prepare` makes it
        return self.watch

    def _check_whole(self, source_topic: SourceTopic, state: TopicState, batch: SourceBatch) -> None:
        """After the read, too: what was deleted before it was read is missing in the batch, and what was read from a
        source that is another one now may be another's (C72).
        """
        for partition, how in self.source.after_read(source_topic, state, self.reached.moved(batch.ends())).items():
            if isinstance(how, SourceWentBack | copy_continuation.SourceWasCut):
                self._start(state, partition, how)
            if isinstance(how, NeverCopied):
                newest = self.warehouse.store.load(self.name)
                self.reached.check(newest, newest.partitions)  # else another ingest has copied it, so that it could go
                self._start(state, partition, how)
                self._remember(state)

    @property
    def _origin(self) -> CopyOf:
        return CopyOf(self.source.system, self.topic)

    @property
    def _theirs(self) -> str:
        """The source's topic, as messages name it."""
        return str(self._origin)

    def report(self, error: LithifyError | None, *, begun: bool = True) -> IngestReport:
        took_ms = self.warehouse.clock.now_ms() - self.started_ms
        refused = not begun and isinstance(error, RefusedError)
        report = IngestReport(
            str(self.name),
            self.topic,
            self.batches,
            self.records,
            took_ms,
            self.holes,
            missed_deletes=() if self.watch is None else self.watch.missed,
            damaged_entries=self.damaged_entries,
            damaged_named=self.damaged_named,
            deleted_keys=self.deleted_keys,
        )
        return report if error is None else report.failed(error, refused=refused)

    def _commit(
        self, logs: tuple[StagedLog, ...], ends: Mapping[int, SourcePosition], run_id: str, begun: Begun
    ) -> TopicState | None:
        """Commits; returns the new version, or None if there was nothing to commit."""
        copied = Copied(self.name, logs, ends, self.same.epochs(ends), {p: begun[p] for p in ends if p in begun})
        if not (copied.logs or self.reached.needs(copied)):
            return None
        state = commit_copied(self.warehouse, copied, self.reached, run_id)
        self.reached = self.reached.after(copied)
        return state

    def _state(self, source_topic: SourceTopic) -> TopicState:
        try:
            return self.warehouse.store.load(self.name)
        except UnknownTopicError:
            settings = self.source.settings(self.topic, self.request.settings)
            reference = TopicReference(self.name, str(self.name))
            with suppress(TopicExistsError):  # another ingest of it has begun right now: one of the two goes on
                return create_topic(self.warehouse, reference, settings, source_topic.partitions[-1] + 1)
            return self.warehouse.store.load(self.name)

    def _with_partitions(self, state: TopicState, source_topic: SourceTopic) -> TopicState:
        check_none_gone(state, source_topic, self._theirs)
        wanted = source_topic.partitions[-1] + 1
        if wanted <= len(state.logs):
            return state
        alter(self.warehouse, self.name, {}, partitions=wanted, check_partitions=check_still_copy)
        return self.warehouse.store.load(self.name)

    def _is_known(self, state: TopicState, source_topic: SourceTopic) -> bool:
        """Whether its documents have its source. Raises `RefusedError` or `SourceWentBackError` if that is another."""
        if (copied := self._known(state)) is None:
            return False
        self.holes = copied.holes
        check_cluster(state, copied, source_topic)
        self._check_id(copied.topic_id)
        return True

    def _known(self, state: TopicState) -> CopiedTopic | None:
        """What is stored of its source. Raises `RefusedError` if that is another topic."""
        return known_source(self.warehouse.store, state, self._origin)

    def _check_id(self, topic_id: str) -> None:
        if topic_id and self.topic_id and topic_id != self.topic_id:  # empty where the source does not tell
            raise SourceWentBackError(
                f"{self.name}: {self._theirs} was deleted and recreated since it was copied",
                hint="ingest the new one into another topic",
            )

    def _remember(self, state: TopicState) -> None:
        config = self.source.own_config(self.topic)
        copied = CopiedTopic(self.topic, self.topic_id, self.holes, config=config, cluster_id=self.cluster_id)
        remember(self.warehouse.store, state, self._known(state), copied)
