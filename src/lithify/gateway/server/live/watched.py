"""The state of all topics, kept by the gateway: a look reads only topics that have changed, and some failures.

GET /status ───────► look ──► overview
open pages  ──┐        │
              ▼        ▼
    every LOOK_MS    rows that differ from those of the look before: only these are sent
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import BoundedSemaphore, Lock
from typing import Any

from lithify.api.lake import Lake
from lithify.api.wiring.cleaners import running_cleaners
from lithify.errors import BusyError, LithifyError
from lithify.errors.defects import as_lithify_error
from lithify.gateway.server.live.events import Events
from lithify.gateway.server.live.listed import ListedTopics
from lithify.model.names import TopicName, in_order
from lithify.reports.looks.cleaners import RunningCleaner
from lithify.reports.overview import CatalogOverview, TopicOverview
from lithify.reports.report import Reports
from lithify.service.look.assessed_topic import SharedTopics
from lithify.service.look.known_failures import KnownFailures
from lithify.service.look.overview import StatusWatch
from lithify.service.look.status import TellFailure, read_topics, tell_failures

LOOK_MS = 1_500
"""Between two looks for open pages."""
LISTED_MS = 60_000
"""Between two looks for lists of topics, if there are no others: a list reads what has changed since a look."""

WAITING = 24
"""Requests that wait until all topics are read; each has a thread, of the 40 that the gateway has for requests."""


@dataclass(frozen=True, slots=True)
class ChangedTopics:
    """What has changed up to a number."""

    number: int
    now_ms: int
    rows: tuple[TopicOverview, ...] = ()
    gone: tuple[str, ...] = ()
    error: str | None = None
    """Why the last look failed."""


@dataclass(slots=True)
class Watched:
    """The topics as of the last look. Several threads may use it."""

    lake: Lake
    events: Events = field(default_factory=Events)
    """Of the gateway, whose cleaner may change the failures of a topic."""
    topics: SharedTopics | None = None
    """What the gateway's cleaner reads of topics too."""
    _told: int = 0
    """The number of the last event that the failures are as new as."""
    _failures: KnownFailures = field(init=False)
    _watch: StatusWatch = field(init=False)
    _rows: dict[str, tuple[int, TopicOverview]] = field(default_factory=dict)
    """By topic, with the number of the look that found it so."""
    _noted: tuple[TopicOverview, ...] | None = None
    _gone: dict[str, int] = field(default_factory=dict)
    _forgotten: int = 0
    """The number of the last look whose topics that were gone are not all kept."""
    _begun: int = 0
    """Looks so far."""
    _overview: CatalogOverview | LithifyError | None = None
    """Of the last look, or why it failed."""
    _number: int = 0
    _now_ms: int = 0
    _error: str | None = None
    _looked_ms: int | None = None
    _names: dict[TopicName, None] = field(default_factory=dict)
    """In the order of lists."""
    _looking: Lock = field(default_factory=Lock)
    _waiting: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(WAITING))
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._failures, self._watch = KnownFailures(self.lake.warehouse), self.lake.watch()
        self._watch.failures, self._watch.shared = self._failures.of, self.topics

    def changed(self, topic: str) -> None:
        """A request has changed something of the topic."""
        self._failures.forget(str(self.lake.topic(topic).topic_name))

    def overview(self) -> CatalogOverview:
        """The state of all topics, of a look that has begun since: those who wait share it.

        Raises `WarehouseError`, or `BusyError` if too many wait.
        """
        before = self._begun
        with self._turn():
            if self._begun > before:
                return self._last()
            return self._look()

    def names(self) -> dict[str, TopicName]:
        """The topics as of a look that is at most `LOOK_MS` old, by what identifies each. Raises `WarehouseError`."""
        with self._turn():
            if self.is_due:
                self._look()
            self._last()
            return self._watch.names()

    def listed(self, failed: TellFailure | None) -> ListedTopics:
        """The topics now, by name. Those without commits since the last look are not read. Raises `WarehouseError`.

        With `failed` it is told of each topic that cannot be read; else the first of their errors is raised.
        """
        store = self.lake.warehouse.store
        with self._turn():
            if self._looked_ms is None or self.lake.warehouse.clock.monotonic_ms() >= self._looked_ms + LISTED_MS:
                self._look()
            states, errors = read_topics(store, lambda state: state, self._watch.state_at)
            if self._names.keys() != states.keys():
                self._names = dict.fromkeys(sorted(states, key=in_order))
            listed = ListedTopics([states[name] for name in self._names], store)
        tell_failures(errors, failed)
        return listed

    @property
    def is_due(self) -> bool:
        """Whether there was no look within `LOOK_MS`."""
        looked_ms = self._looked_ms
        return looked_ms is None or self.lake.warehouse.clock.monotonic_ms() >= looked_ms + LOOK_MS

    @property
    def is_looking(self) -> bool:
        return self._looking.locked()

    @property
    def has_looked(self) -> bool:
        """Whether a look has ended; the first one reads all topics."""
        return self._looked_ms is not None

    def try_look(self) -> None:
        """A look, unless another thread does it. Keeps its error."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            with suppress(Exception):  # it is kept
                self._look()
        finally:
            self._looking.release()

    def since(self, number: int) -> ChangedTopics:
        """The rows that have changed after that number."""
        with self._lock:
            if number == self._number:
                return ChangedTopics(number, self._now_ms, error=self._error)
            rows = tuple(row for at, row in self._rows.values() if at > number)
            gone = tuple(name for name, at in self._gone.items() if at > number)
            return ChangedTopics(self._number, self._now_ms, rows, gone, self._error)

    def lacks(self, number: int) -> bool:
        """Whether topics that were gone after that number are not all kept."""
        return number < self._forgotten

    @property
    def number(self) -> int:
        return self._number

    @property
    def error(self) -> str | None:
        """Why the last look failed."""
        return self._error

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Raises `BusyError` if too many wait: while a read hangs, others need threads too."""
        if not self._waiting.acquire(blocking=False):
            raise BusyError(f"{WAITING} requests wait already until all topics are read", hint="try again later")
        try:
            with self._looking:
                yield
        finally:
            self._waiting.release()

    def _last(self) -> CatalogOverview:
        """What the last look has found. Raises its error: none of those who waited for it asks the catalog anew."""
        if isinstance(self._overview, LithifyError):
            raise self._overview
        assert self._overview is not None
        return self._overview

    def _look(self) -> CatalogOverview:
        try:
            self._overview = self._looked()
        except Exception as error:
            self._overview = as_lithify_error(error, "the check of all topics")
            told = str(self._overview)
            with self._lock:
                self._error, self._number = told, self._number + (self._error != told)
            raise
        finally:
            self._looked_ms = self.lake.warehouse.clock.monotonic_ms()
        return self._overview

    def _looked(self) -> CatalogOverview:
        for number, kind, data in self.events.since(self._told):
            self._told = number
            if kind == "cleaner" and data["topic"] is not None:
                self._failures.forget(data["topic"])
        self._begun += 1
        overview = self._watch.overview()
        self._failures.keep(row.topic for row in overview.topics)
        with self._lock:
            number = self._number + 1
            if self._note(overview.topics, number) or self._error is not None:
                self._number = number
            self._error, self._now_ms = None, overview.now_ms
        return overview

    def _note(self, topics: tuple[TopicOverview, ...], number: int) -> bool:
        """Stores the rows; returns whether any has changed. At the first look none has: who follows reads all then."""
        if topics is self._noted:
            return False
        if self._noted is None:
            self._noted, self._rows = topics, {row.topic: (0, row) for row in topics}
            return False
        self._noted = topics
        before, self._rows = self._rows, {}
        changed = False
        for row in topics:
            at, known = before.pop(row.topic, (0, None))
            is_new = known is None or not _same(known, row)
            changed = changed or is_new
            self._rows[row.topic] = (number if is_new else at, row)
            self._gone.pop(row.topic, None)
        self._gone |= dict.fromkeys(before, number)
        while len(self._gone) > GONE_KEPT:
            self._forgotten = self._gone.pop(next(iter(self._gone)))
        return changed or bool(before)


GONE_KEPT = 1_000


def _same(before: TopicOverview, after: TopicOverview) -> bool:
    """Whether nothing but the time has changed: a reader knows since when a topic is overdue."""
    if before is after:
        return True
    return (before.overdue_ms > 0) == (after.overdue_ms > 0) and before == replace(after, overdue_ms=before.overdue_ms)


@dataclass(frozen=True, slots=True, repr=False)
class WatchedLake(Lake):
    """A lake whose `status` comes from a watch that is kept, and so do names of topics."""

    watched: Watched | None = None

    def status(self, *, now_ms: int | None = None) -> CatalogOverview:
        """As of another time it is found anew."""
        if now_ms is not None or self.watched is None:
            return Lake.status(self, now_ms=now_ms)
        return self.watched.overview()

    def topic_infos(self, failed: TellFailure | None = None) -> Any:
        """A sequence of them, of which a page is sent."""
        return Lake.topic_infos(self, failed) if self.watched is None else self.watched.listed(failed)

    def running_cleaners(self, *, coordination_url: str | None = None) -> Reports[RunningCleaner]:
        names = None if self.watched is None else self.watched.names
        return Reports(running_cleaners(self.warehouse, coordination_url, names))
