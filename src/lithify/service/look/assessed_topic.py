"""A topic at one version with the assessments of its logs, and what watches of one process share of it (C50).

cleaner's watch   ──► orders at token 7: read once ──┐
gateway's watch   ──► orders at token 7 ─────────────┼──► the same `AssessedTopic`, assessed for each one's time
Kafka's clients   ──► orders at token 7 ─────────────┴──► the same `TopicState`
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from threading import Lock

from lithify.errors import DamagedError
from lithify.model.groups.reads import TopicReads
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore
from lithify.rules.schedule.assessment import Assessment, assess
from lithify.rules.schedule.idle import assess_idle, assess_replica

Segments = Mapping[int, tuple[Segment, ...]]
"""By partition, in offset order."""


@dataclass(frozen=True, slots=True)
class AssessedTopic:
    """A topic at one version, and the assessments of its logs at one time."""

    state: TopicState
    assessments: Mapping[int, Assessment]
    """By partition, of all logs that can be read."""
    segments: Segments
    """Of the logs whose manifests had to be opened."""
    damaged: Mapping[int, DamagedError]
    """By partition, why the manifests of a log cannot be read."""
    reads: TopicReads
    """How far the groups that the topic names have read it."""

    def stands_at(self, reads: TopicReads, now_ms: int) -> bool:
        """Whether its assessments hold at `now_ms` too: by their states alone, no log is due then."""
        if self.segments or self.damaged or self.reads != reads:
            return False
        due_ms = [one.verdict.due_at_ms for one in self.assessments.values()]
        return all(at_ms is None or now_ms < at_ms for at_ms in due_ms)


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """Topics as one process has read them last, so that each version is read once for all who watch it there."""

    _topics: dict[TopicName, tuple[str, AssessedTopic]] = field(default_factory=dict)
    """By name, with the change token that it was read at."""
    _states: dict[TopicName, tuple[str, TopicState]] = field(default_factory=dict)
    """The same for their states."""
    _reading: dict[TopicName, Lock] = field(default_factory=dict)
    """By topic: a read that hangs keeps none waiting who need another one."""
    _loading: dict[TopicName, Lock] = field(default_factory=dict)

    def read(
        self, name: TopicName, token: str | None, read: Callable[[AssessedTopic | None], AssessedTopic | None]
    ) -> AssessedTopic | None:
        """What `read` returns; it gets the topic if that was read at this token. Others that need it wait meanwhile."""
        with self._reading.setdefault(name, Lock()):
            at, known = self._topics.get(name, (None, None))
            topic = read(known if token is not None and token == at else None)
            if topic is not None and topic.damaged:
                self._topics.pop(name, None)
            elif token is not None and topic is not None:
                self._topics[name] = token, topic
            return topic

    def state(self, store: LogStore, name: TopicName, token: str | None) -> TopicState:
        """The topic as of its token. Raises what `LogStore.load_at` raises."""
        with self._loading.setdefault(name, Lock()):
            at, known = self._states.get(name, (None, None))
            if known is not None and token is not None and token == at:
                return known
            state = store.load_at(name, token)
            if token is not None:
                self._states[name] = token, state
            return state

    def keep(self, names: Collection[TopicName]) -> None:
        """Forgets others, once it knows more than these."""
        for kept in (self._topics, self._states, self._reading, self._loading):
            if len(kept) > len(names):
                for name in set(kept).difference(names):
                    kept.pop(name, None)


def assess_topic(
    store: LogStore, state: TopicState, reads: TopicReads, now_ms: int, known: Segments | None = None
) -> AssessedTopic:
    """Assesses the logs of a topic, which `reads` says how far groups have read.

    It opens no manifest of logs whose segments are `known`.

    Raises `WarehouseError` or `UnknownVersionError`; logs whose manifests are damaged are in `damaged` (C31).
    """
    settings = state.round_settings
    if not state.takes_rounds:
        of_replica = {log.partition: assess_replica(log, settings) for log in state.logs}
        return AssessedTopic(state, of_replica, {}, {}, reads)
    assessments = {log.partition: assess_idle(log, settings, now_ms, reads.of(log.partition)) for log in state.logs}
    closer = [partition for partition, assessment in assessments.items() if assessment is None]
    segments, damaged = dict(known or {}), {}
    unread = [partition for partition in closer if partition not in segments]
    try:
        segments |= _read(store, state, unread)
    except DamagedError:
        for partition in unread:
            try:
                segments |= _read(store, state, [partition])
            except DamagedError as error:
                damaged[partition] = error
    for partition in closer:
        if partition in segments:
            log, read = state.log(partition), reads.of(partition)
            assessments[partition] = assess(log, segments[partition], settings, now_ms, read)
    complete = {partition: assessment for partition, assessment in assessments.items() if assessment is not None}
    return AssessedTopic(state, complete, segments, damaged, reads)


def _read(store: LogStore, state: TopicState, partitions: list[int]) -> Segments:
    """Opens the manifests of these logs, if there are any."""
    by_partition: dict[int, list[Segment]] = {partition: [] for partition in partitions}
    for segment in store.segments(state, partitions) if partitions else ():
        by_partition[segment.partition].append(segment)
    return {partition: tuple(segments) for partition, segments in by_partition.items()}
