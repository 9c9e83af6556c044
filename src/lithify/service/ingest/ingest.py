"""Copies topics of another system into the lake, and continues where the copies end (C1, C6).

    source: topics, ids, offsets ─► where each copy continues ─► a stream each ─► commits
                                 └─► an error: that topic alone stops

The copy has the source's partitions, offsets, timestamps, keys, values and headers. Its log ends alone say
how far it has got; no other progress is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from lithify.errors import (
    BrokerError,
    LithifyError,
    RefusedError,
    SourceLostError,
    SourceWentBackError,
    TopicExistsError,
    UnknownSourceError,
    UnknownTopicError,
)
from lithify.lifecycle.source_continuation import CopyContinuation, CopyContinues, NeverCopied, SourceWentBack
from lithify.model.log import TopicState
from lithify.model.names import LogId, TopicName, TopicReference, parse_topic
from lithify.model.segment import volume_of
from lithify.model.source import IngestRequest, SourcePosition, SourceTopic, check_apart
from lithify.model.staged import Destination, by_partition, segments_of_parts
from lithify.ports.source import Copying, Source, SourceBatch, SourceStream, StopAsked
from lithify.ports.store import Warehouse
from lithify.reports.ingest import CopiedTopic, Hole, IdHole, IngestBatch, IngestReport, TellBatch
from lithify.service.change.alter import alter
from lithify.service.creation import create_topic
from lithify.service.documents import put_source, source_of
from lithify.service.ingest.commit_copied import Copied, Reached, commit_copied
from lithify.service.ingest.losses import begin_of, gone_of, hole_of

LOOK_S = 0.2
"""Between two checks whether the streams are still active."""
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
    started_ms: int
    batches: int = 0
    records: int = 0
    holes: tuple[Hole | IdHole, ...] = ()
    topic_id: str = ""
    reached: Reached = NOT_BEGUN

    def prepare(self) -> Mapping[int, SourcePosition | None]:
        """Creates the topic in the lake if it is missing; returns, by partition, where to continue.

        Raises `UnknownSourceError`, `SourceWentBackError`, `SourceLostError`, or what creating and altering
        a topic raises.
        """
        found = self.source.topic(self.topic)
        self.topic_id = found.topic_id
        state = self._state(found)
        self._check_same(state)
        state = self._with_partitions(state, found)
        starts = {p: self._start(p, how) for p, how in self.source.continuations(found, state).items()}
        self._remember(state)
        self.reached = Reached.of(state)
        known = {partition: start for partition, start in starts.items() if start is not None}
        self._commit(Copied(self.name, (), known), self.warehouse.clock.new_id())
        return starts

    def _start(self, partition: int, how: CopyContinuation) -> SourcePosition | None:
        log = LogId(self.name, partition)
        match how:
            case CopyContinues(position):
                return position
            case NeverCopied(_, end) if self.request.accepts_loss:
                hole = hole_of(partition, how)
                self.holes = (*(other for other in self.holes if begin_of(other) != begin_of(hole)), hole)
                return end
            case NeverCopied(start, end):
                raise SourceLostError(
                    f"{log}: {self._theirs} starts at {end}, and the copy ends at {start}: {gone_of(how)}",
                    hint="--accept-loss continues at its start, and stores the range",
                )
            case SourceWentBack(log_end, source_end):
                raise SourceWentBackError(
                    f"{log}: {self._theirs} ends at {source_end}, below the {log_end} of the copy",
                    hint="it was recreated or truncated: ingest it into another topic, or cut this one",
                )

    def take(self, batch: SourceBatch) -> None:
        """Copies and commits one batch; afterwards the logs end where the batch was read to.

        Raises `ConflictError`, `InvalidRecordError`, `SourceWentBackError`, `SourceLostError`, or what a commit
        raises.
        """
        clock = self.warehouse.clock
        begun_ms, run_id = clock.now_ms(), clock.new_id()
        found = self.source.topic(self.topic)
        state = self.warehouse.store.load(self.name)
        self.reached.check(state, state.partitions)  # first: do not alter a recreated topic
        self._check_id(found.topic_id)  # nor one for a recreated source
        if not self.batches:
            self._known(state)  # an ingest of another topic into it may have begun in the same moment
        state = self._with_partitions(state, found)
        copying = Copying(Destination.of(state), self.warehouse.files.access, run_id, self.request.drops_keyless)
        copied = batch.copy(copying)
        # After the read: the topic may have been recreated before it, and the batch would be of the new one.
        self._check_id(self.source.topic(self.topic).topic_id)
        self._check_whole(found, state, batch)
        state = self._commit(Copied(self.name, copied, batch.ends()), run_id) or state
        counts = {p: volume_of(segments_of_parts(parts)).records for p, parts in by_partition(copied).items()}
        self.batches += 1
        self.records += sum(counts.values())
        logs = self.source.progress(found, state, counts)
        took_ms = clock.now_ms() - begun_ms
        self.tell(IngestBatch(str(self.name), self.topic, state.version, logs, took_ms))

    def _check_whole(self, found: SourceTopic, state: TopicState, batch: SourceBatch) -> None:
        """After the read, too: what was deleted before it was read is missing in the batch."""
        for partition, how in self.source.after_read(found, state, tuple(batch.ends())).items():
            if isinstance(how, NeverCopied):
                newest = self.warehouse.store.load(self.name)
                self.reached.check(newest, newest.partitions)  # else another ingest has copied it, so that it could go
                self._start(partition, how)
                self._remember(state)

    @property
    def _theirs(self) -> str:
        """The source's topic, as messages name it."""
        return f"{self.source.system}'s {self.topic}"

    def report(self, error: LithifyError | None, *, begun: bool = True) -> IngestReport:
        took_ms = self.warehouse.clock.now_ms() - self.started_ms
        why = None if error is None else str(error)
        refused = not begun and isinstance(error, RefusedError)
        return IngestReport(str(self.name), self.topic, self.batches, self.records, took_ms, self.holes, why, refused)

    def _commit(self, copied: Copied, run_id: str) -> TopicState | None:
        """Commits; returns the new version, or None if there was nothing to commit."""
        if not (copied.logs or self.reached.needs(copied.ends)):
            return None
        state = commit_copied(self.warehouse, copied, self.reached, run_id)
        self.reached = self.reached.after(copied)
        return state

    def _state(self, found: SourceTopic) -> TopicState:
        try:
            return self.warehouse.store.load(self.name)
        except UnknownTopicError:
            settings = self.source.settings(self.topic, self.request.settings)
            reference = TopicReference(self.name, str(self.name))
            with suppress(TopicExistsError):  # another ingest of it has begun right now: one of the two goes on
                return create_topic(self.warehouse, reference, settings, len(found.partitions))
            return self.warehouse.store.load(self.name)

    def _with_partitions(self, state: TopicState, found: SourceTopic) -> TopicState:
        wanted = found.partitions[-1] + 1
        if wanted <= len(state.logs):
            return state
        alter(self.warehouse, self.name, {}, partitions=wanted)
        return self.warehouse.store.load(self.name)

    def _check_same(self, state: TopicState) -> None:
        """Raises `RefusedError` or `SourceWentBackError` if it is a copy of another topic."""
        if (copied := self._known(state)) is not None:
            self.holes = copied.holes
            self._check_id(copied.topic_id)

    def _known(self, state: TopicState) -> CopiedTopic | None:
        """What is stored of its source. Raises `RefusedError` if that is another topic."""
        copied = source_of(self.warehouse.store, state)
        if copied is not None and copied.name != self.topic:
            raise RefusedError(
                f"{self.name} is a copy of {self.source.system}'s {copied.name}, not of {self.topic}",
                hint="name another --into",
            )
        return copied

    def _check_id(self, topic_id: str) -> None:
        if topic_id and self.topic_id and topic_id != self.topic_id:  # empty where the source does not tell
            raise SourceWentBackError(
                f"{self.name}: {self._theirs} was deleted and recreated since it was copied",
                hint="ingest the new one into another topic",
            )

    def _remember(self, state: TopicState) -> None:
        known = self._known(state)
        copied = CopiedTopic(self.topic, self.topic_id or ("" if known is None else known.topic_id), self.holes)
        if known != copied:
            put_source(self.warehouse.store, state, copied)


def ingest(
    warehouse: Warehouse, source: Source, request: IngestRequest, tell: TellBatch, stops: Callable[[], bool]
) -> tuple[IngestReport, ...]:
    """Copies the current records of topics, or with `continuous` all new ones until `stops` returns true.

    A topic that fails has its error in its report; the others continue. Raises `BrokerError` or
    `ConnectorError` where no copy can start.
    """
    copies = _Copies(warehouse, source, request, tell)
    try:
        topics = request.topics if request.pattern is None else source.topics(request.pattern)
        if not topics:
            raise UnknownSourceError(f"{source.where} has no topic that matches {request.pattern}")
        if not request.into_stream and len(topics) > 1:
            what = f"{len(topics)} topics cannot go into one topic, {request.into}"
            raise RefusedError(what, hint="name a stream instead: --into shop/")
        copies.begin(topics)
        while copies.go_on and not stops():
            warehouse.clock.sleep(LOOK_S)
            copies.look_for_new()
    except StopAsked:
        pass
    finally:
        reports = copies.end()
    return reports


class _Copies:
    """The copies of one ingest, and the reports of those that could not start."""

    def __init__(self, warehouse: Warehouse, source: Source, request: IngestRequest, tell: TellBatch) -> None:
        self._warehouse, self._source = warehouse, source
        self._request, self._tell = request, tell
        self._under_way: list[tuple[TopicIngest, SourceStream]] = []
        self._reports: list[IngestReport] = []
        self._known: set[str] = set()
        self._looked_ms = warehouse.clock.now_ms()

    @property
    def go_on(self) -> bool:
        return any(stream.is_active for _, stream in self._under_way)

    def begin(self, topics: Sequence[str]) -> None:
        """Starts a copy of each topic. Raises what `_targets` raises."""
        clock = self._warehouse.clock
        self._known.update(topics)
        for topic, name in self._targets(topics).items():
            copy = TopicIngest(self._warehouse, self._source, self._request, topic, name, self._tell, clock.now_ms())
            try:
                stream = self._source.stream(topic, copy.prepare(), clock.new_id(), copy.take)
            except LithifyError as error:
                self._reports.append(copy.report(error, begun=False))
            else:
                self._under_way.append((copy, stream))

    def look_for_new(self) -> None:
        """Starts copies of new topics that match, looked for as often as the source's own clients do."""
        pattern, now_ms = self._request.pattern, self._warehouse.clock.now_ms()
        if pattern is None or not self._request.continuous:
            return
        if now_ms - self._looked_ms < self._source.look_interval_ms:
            return
        self._looked_ms = now_ms
        found: Sequence[str] = ()
        with suppress(BrokerError):  # the next look may succeed; streams handle the outage themselves
            found = self._source.topics(pattern)
        self.begin([topic for topic in found if topic not in self._known])

    def _targets(self, topics: Sequence[str]) -> dict[str, TopicName]:
        """By topic of the source, the one that it is copied into.

        Of topics that a pattern matches, one that no topic can be a copy of ends with its error (C50). Raises
        `RefusedError` or `InvalidNameError` for one that was named.
        """
        found: dict[str, TopicName] = {}
        for topic in topics:
            into = self._request.target(topic)
            try:
                found[topic] = parse_topic(into).whole("copied into" if self._request.into else "copied")
            except LithifyError as error:
                if self._request.pattern is None:
                    raise
                self._reports.append(IngestReport(into, topic, 0, 0, 0, error=str(error), refused=True))
        check_apart(found)
        return found

    def end(self) -> tuple[IngestReport, ...]:
        """Stops all streams; returns the reports of all topics."""
        if self._under_way:
            with ThreadPoolExecutor(len(self._under_way)) as pool:
                list(pool.map(lambda copy: copy[1].stop(), self._under_way))
        return (*self._reports, *(copy.report(stream.end()) for copy, stream in self._under_way))
