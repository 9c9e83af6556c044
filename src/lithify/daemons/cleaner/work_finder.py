"""Finds the work in a catalog: the watcher of the cleaner (C28, C29, C31).

    assessments, failures ─► work                  valid for a minute without a commit
                          ─► nothing               until the next commit, or until the clock makes it due
    cannot be read        ─► reported, retried     after a delay that grows with each failure

It keeps one small entry for each topic in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.daemons.cleaner.failures import Failures
from lithify.daemons.cleaner.inherited_settings import Inheritance
from lithify.daemons.cleaner.look_figures import LookFigures, topic_figures
from lithify.daemons.outages import GROUPS
from lithify.errors import Blame, LithifyError, UnknownTopicError, UnknownVersionError
from lithify.model.failure import LogFailure
from lithify.model.names import LogId, TopicName
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.schedule.agenda import RequiredWork, TopicWork, required_work
from lithify.rules.schedule.backoff import LONGEST_BACKOFF_MS, after_failure, may_run
from lithify.service.group_reads import read_groups
from lithify.service.look.assessed_topic import AssessedTopic, assess_topic
from lithify.service.look.catalog_watch import CatalogWatch, Finding

TURN_MS = 60_000
"""How long the finding for a topic is valid while its work waits, if there is no commit."""
REST_MS = LONGEST_BACKOFF_MS
"""How long a due log whose round had nothing to do is left alone, if there is no commit."""

WorkOrFailure = TopicWork | LogFailure | None
"""The work of a topic, or its failure as a whole."""


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look."""

    topics: int
    read: int
    """Topics whose metadata was read."""
    opened: int
    """Topics whose manifests were read."""
    work: tuple[TopicWork, ...]
    """Topics with a log that is due for a round, or for retention."""


@dataclass(slots=True)
class WorkFinder:
    """Only one thread may check topics at any time; several may report results of topics."""

    warehouse: Warehouse
    failures: Failures
    reporter: EventReporter
    inheritance: Inheritance = field(init=False)
    watch: CatalogWatch[WorkOrFailure] = field(init=False)
    figures: LookFigures = field(default_factory=LookFigures)
    _reported: dict[TopicName, tuple[Finding[WorkOrFailure], int]] = field(default_factory=dict)
    """Findings that replace the watch's findings at the next check, and when they were made."""
    _failed: dict[TopicName, LogFailure] = field(default_factory=dict)
    """Topics whose work failed as a whole, until it succeeds or there is none."""
    _resting: dict[TopicName, dict[int, tuple[LogState, int]]] = field(default_factory=dict)
    """Due logs whose rounds had nothing to do: by partition their states, and since when they rest, for `REST_MS`."""
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.inheritance = Inheritance(self.warehouse, self.reporter)
        self.watch = CatalogWatch(self.warehouse.store, self, groups=self.warehouse.groups)

    def look(self, now_ms: int) -> Look:
        """Checks every topic. Raises `WarehouseError` if the catalog cannot be reached."""
        with self._lock:
            reported, self._reported = self._reported, {}
        for name, (finding, made_ms) in reported.items():  # made by a clock that was ahead, it waits for nothing
            self.watch.replace_finding(name, finding, made_ms)
        changed = self.inheritance.refresh({name.stream for name in self.watch.known})
        for name in [name for name in self.watch.known if name.stream in changed]:
            self.watch.replace_finding(name, Finding(None, 0), now_ms)
        reads = self.watch.look(now_ms)
        if self.watch.groups_error is not None:
            self.reporter.outage(GROUPS, self.watch.groups_error)
        else:
            self.reporter.well(GROUPS)
        with self._lock:  # other threads report failures meanwhile
            self._failed = {name: failure for name, failure in self._failed.items() if name in self.watch.known}
            self._resting = {name: logs for name, logs in self._resting.items() if name in self.watch.known}
        self.figures.keep(self.watch.known.keys())
        findings = [known.finding.value for known in self.watch.known.values()]
        work = tuple(value for value in findings if isinstance(value, TopicWork))
        return Look(len(findings), reads.metadata, reads.manifests, work)

    def let_rest(self, name: TopicName, logs: Iterable[LogState], now_ms: int) -> None:
        """A round of these due logs had nothing to do: they are not due for a while, unless a commit changes them."""
        with self._lock:
            self._resting.setdefault(name, {}).update({log.partition: (log, now_ms) for log in logs})

    def look_again(self, name: TopicName) -> None:
        """A round or chore was done: the next look reads the topic again."""
        with self._lock:
            self._reported.setdefault(name, (Finding(None, 0), 0))

    def back_off(self, name: TopicName, error: LithifyError, now_ms: int) -> None:
        """The work of a topic failed as a whole: it is retried after a delay that grows with each failure."""
        with self._lock:
            failure = self._failed[name] = _after(self._failed.get(name), error, now_ms)
            self._reported[name] = _backed_off(failure), now_ms
        self.reporter.error(name, error)

    def succeeded(self, name: TopicName) -> None:
        """The work of a topic did not fail: the delay after the next failure is the first one again."""
        with self._lock:
            self._failed.pop(name, None)

    def required(self, topic: AssessedTopic, now_ms: int) -> RequiredWork:
        """The work of a topic. Raises `WarehouseError` if its failures cannot be read.

        A log whose manifests are damaged counts as failed; the others of the topic are worked on (C31).
        """
        state = topic.state
        if not topic.damaged and not any(assessment.verdict.due for assessment in topic.assessments.values()):
            return self._required(topic, {}, now_ms)
        failures = self.failures.of(state)
        for partition, error in topic.damaged.items():
            if self.failures.is_gone(state, error):
                raise UnknownTopicError(f"{state.name} was deleted") from error
            if may_run(failures.get(partition), now_ms):
                failure = self.failures.failed(state, partition, error, now_ms)
                self.reporter.log_failed(LogId(state.name, partition), error, failure)
        if topic.damaged:
            failures = self.failures.of(state)
        return self._required(topic, failures, now_ms)

    def _required(self, topic: AssessedTopic, failures: Mapping[int, LogFailure], now_ms: int) -> RequiredWork:
        state = topic.state
        required = required_work(state, topic.assessments, failures, now_ms)
        required = self._without_resting(state, required, now_ms)
        with self._lock:
            resting = frozenset(self._resting.get(state.name, ()))
        self.figures.note(state.name, topic_figures(topic, failures, resting, now_ms))
        return required

    def _without_resting(self, state: TopicState, required: RequiredWork, now_ms: int) -> RequiredWork:
        with self._lock:
            known = self._resting.get(state.name)
            if known is None:
                return required
            logs = dict(enumerate(state.logs))
            resting = {
                p: (log, since_ms)
                for p, (log, since_ms) in known.items()
                if log == logs.get(p) and since_ms <= now_ms < since_ms + REST_MS
            }
            self._resting[state.name] = resting
        awake = required.only([p for p in required.rounds if p not in resting])
        if awake.rounds or awake.retains or not resting:
            return awake
        return replace(awake, look_at_ms=min(since_ms for _, since_ms in resting.values()) + REST_MS)

    def finding(self, topic: AssessedTopic, now_ms: int) -> Finding[WorkOrFailure]:
        """The finding for a topic that was read, and has inherited its stream's settings (`Watcher`)."""
        state = self.inheritance.settled(topic.state)
        if state is not topic.state:
            reads = read_groups(self.warehouse, state)
            topic = assess_topic(self.warehouse.store, state, reads, now_ms)
        required = self.required(topic, now_ms)
        if not required.rounds and not required.retains:
            self.succeeded(state.name)
            return Finding(None, required.look_at_ms)
        return Finding(TopicWork(state.name, state.identity, state.version, required), now_ms + TURN_MS)

    def failed(self, name: TopicName, error: LithifyError, now_ms: int) -> Finding[WorkOrFailure]:
        """Reports the error of a topic that could not be read (`Watcher`)."""
        if isinstance(error, UnknownVersionError):  # another commit came meanwhile: the next look finds it
            return Finding(None, now_ms)
        self.figures.unreadable(name)
        self.reporter.error(name, error)
        known = self.watch.known.get(name)
        before = None if known is None else known.finding.value
        return _backed_off(_after(before if isinstance(before, LogFailure) else None, error, now_ms))


def _after(before: LogFailure | None, error: LithifyError, now_ms: int) -> LogFailure:
    return after_failure(before, error, now_ms, counts=error.blames is Blame.LOG)


def _backed_off(failure: LogFailure) -> Finding[WorkOrFailure]:
    return Finding(failure, failure.retry_ms, despite_commits=True)
