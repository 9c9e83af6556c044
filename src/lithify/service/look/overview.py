"""An overview of the catalog: the state of every topic, the worst first (C28, C29, C31).

A second look reads only topics with new commits, if the catalog has change tokens, and failures, unless they are
`KnownFailures`; other topics are assessed again from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lithify.errors import CoordinationError, LithifyError
from lithify.model.cleaner_note import CleanerNote
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.overview import CatalogOverview, Standing, TopicOverview
from lithify.rules.schedule.standing import log_standing, topic_overview, worst_first
from lithify.service.cleaner_rates import rates_of_cleaners
from lithify.service.documents import failures_of
from lithify.service.look.assessed_topic import AssessedTopic, SharedTopics
from lithify.service.look.catalog_watch import CatalogWatch, Finding


@dataclass(slots=True)
class StatusWatch:
    """Assesses a whole catalog, once or repeatedly. Not safe to use from several threads."""

    warehouse: Warehouse
    cleaners: Callable[[], tuple[CleanerNote, ...] | None] = lambda: None
    """The notes that the catalog's cleaners store; None without a database. Raises `CoordinationError`."""
    failures: Callable[[TopicState], Mapping[int, LogFailure]] | None = None
    """The failures of a topic, by partition; None reads them at each look."""
    shared: SharedTopics | None = None
    """What other watches of this process read of topics too."""
    _watch: CatalogWatch[TopicOverview] = field(init=False)
    _drawn: dict[TopicName, tuple[Finding[TopicOverview], Mapping[int, LogFailure]]] = field(default_factory=dict)
    """The row of each topic and what it was drawn from: it is kept for as long as that remains."""
    _rows: list[TopicOverview] = field(default_factory=list)
    _sorted: tuple[TopicOverview, ...] = ()
    """The rows, the worst first."""

    def __post_init__(self) -> None:
        self._watch = CatalogWatch(self.warehouse.store, self, groups=self.warehouse.groups)

    def overview(self, *, now_ms: int | None = None) -> CatalogOverview:
        """The state of every topic at `now_ms` or by the clock. Raises `WarehouseError` if the catalog cannot be read.

        A topic that cannot be read is reported as unreadable; the others are assessed.
        """
        cleaners, cleaners_error = None, None
        try:
            cleaners = self.cleaners()  # before the clock: no look that was completed is in the future
        except CoordinationError as error:
            cleaners_error = str(error)
        assessed_ms = self.warehouse.clock.now_ms() if now_ms is None else now_ms
        self._watch.shared = self.shared
        self._watch.look(assessed_ms)
        return CatalogOverview(
            self._worst_first(),
            assessed_ms,
            now_given=now_ms is not None,
            cleaners=cleaners,
            cleaners_error=cleaners_error,
            cleaner_rates=rates_of_cleaners(self.warehouse.store),
        )

    def _worst_first(self) -> tuple[TopicOverview, ...]:
        known = self._watch.known
        if len(self._drawn) > len(known):
            self._drawn = {name: drawn for name, drawn in self._drawn.items() if name in known}
        rows = [one.finding.value for one in known.values()]
        if self._rows != rows:
            self._rows, self._sorted = rows, worst_first(rows)
        return self._sorted

    def names(self) -> dict[str, TopicName]:
        """The topics that the last overview could read, by what identifies each."""
        known = self._watch.known
        return {one.finding.topic.state.identity: name for name, one in known.items() if one.finding.topic is not None}

    def state_at(self, name: TopicName, token: str | None) -> TopicState | None:
        """The state of a topic as of the last overview, if there was no commit since; None if it is to be loaded."""
        known = self._watch.known.get(name)
        topic = None if known is None or not known.is_at(token) else known.finding.topic
        return None if topic is None else topic.state

    def finding(self, topic: AssessedTopic, now_ms: int) -> Finding[TopicOverview]:
        """Its worst log; a person may release failing logs at any time, so it is determined each time."""
        for error in topic.damaged.values():
            raise error
        state, assessments = topic.state, topic.assessments
        failures = failures_of(self.warehouse.store, state) if self.failures is None else self.failures(state)
        drawn = self._drawn.get(state.name)
        if drawn is not None and drawn[0].topic is topic and drawn[1] == failures:
            return drawn[0]
        logs = [log_standing(log, assessments[log.partition], failures.get(log.partition)) for log in state.logs]
        finding = Finding(topic_overview(state, logs), now_ms, topic=topic)
        self._drawn[state.name] = finding, failures
        return finding

    def failed(self, name: TopicName, error: LithifyError, now_ms: int) -> Finding[TopicOverview]:
        """An unreadable topic, with its error."""
        return Finding(TopicOverview(str(name), Standing.UNREADABLE, error=str(error), error_code=error.code), now_ms)
