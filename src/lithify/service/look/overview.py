"""The catalog at a glance: how every topic stands, the worst first (C28, C29, C31).

Of each topic the metadata is read once; manifests are opened only for logs whose state alone does
not say that they rest, so that many thousand idle topics are bearable. Whoever looks again reads
only what has been committed to since, where the catalog tells, and what is known of failures:

    marks ─► as before ─► what was read then ─┐
        └──► another ───► state, manifests ───┴─► how it stands now
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lithify.defects import as_lithify_error
from lithify.errors import CoordinationError, UnknownTopicError
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.ports.store import Warehouse
from lithify.reports.cleaner_note import CleanerNote
from lithify.reports.overview import CatalogOverview, Standing, TopicOverview
from lithify.schedule.assessment import Assessment, assess
from lithify.schedule.idle import assess_idle
from lithify.schedule.standing import log_standing, topic_overview, worst_first
from lithify.waits.parallel import parallel


@dataclass(slots=True)
class _Seen:
    """A topic as it was read. `segments` has those of the logs that were looked at closely, by partition."""

    mark: str | None
    state: TopicState
    segments: dict[int, tuple[Segment, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Lookout:
    """Looks at a whole catalog, once or again and again. Not for several threads at once."""

    warehouse: Warehouse
    cleaners: Callable[[], tuple[CleanerNote, ...] | None] = lambda: None
    """What the cleaners of the catalog say of themselves, where that can be asked. Raises `CoordinationError`."""
    _seen: dict[TopicName, _Seen] = field(default_factory=dict)

    def overview(self, *, now_ms: int | None = None) -> CatalogOverview:
        """How every topic stands at `now_ms` or by the clock. Raises `WarehouseError` if the catalog cannot be read.

        A topic that cannot be read stands for itself; the others are there all the same.
        """
        judged_ms = self.warehouse.clock.now_ms() if now_ms is None else now_ms
        before, self._seen = self._seen, {}
        topics: list[TopicOverview] = []
        marks = dict(self.warehouse.store.change_tokens())

        def stands(name: TopicName) -> tuple[TopicName, _Seen | None, TopicOverview | None]:
            try:
                seen = self._read(name, marks[name], before.get(name))
                return name, seen, self._stands(seen, judged_ms)
            except UnknownTopicError:  # no topic, or not any more
                return name, None, None
            except Exception as error:  # the others are shown all the same (C50)
                reason = str(as_lithify_error(error, name))
                return name, None, TopicOverview(str(name), Standing.UNREADABLE, error=reason)

        for name, seen, overview in parallel(stands, marks, self.warehouse.store.at_once):
            topics += [] if overview is None else [overview]
            if seen is not None:
                self._seen[name] = seen
        found = CatalogOverview(worst_first(topics), judged_ms, now_given=now_ms is not None)
        try:
            return replace(found, cleaners=self.cleaners())
        except CoordinationError as error:
            return replace(found, cleaners_error=str(error))

    def _read(self, name: TopicName, mark: str | None, before: _Seen | None) -> _Seen:
        """A topic as it is now; one that nobody has committed to is as it was read."""
        if before is not None and mark is not None and mark == before.mark:
            return before
        return _Seen(mark, self.warehouse.store.load_at(name, mark))

    def _stands(self, seen: _Seen, now_ms: int) -> TopicOverview:
        failures = self.warehouse.store.failures(seen.state)
        found = self._assessments(seen, now_ms)
        logs = [log_standing(log, found[log.partition], failures.get(log.partition)) for log in seen.state.logs]
        return topic_overview(seen.state, logs)

    def _assessments(self, seen: _Seen, now_ms: int) -> Mapping[int, Assessment]:
        """By partition: whether the log is due, and how dirty it is."""
        settings, logs = seen.state.settings, seen.state.logs
        idle = {log.partition: assess_idle(log, settings, now_ms) for log in logs}
        self._read_segments(seen, [partition for partition, found in idle.items() if found is None])
        return {
            log.partition: idle[log.partition] or assess(log, seen.segments[log.partition], settings, now_ms)
            for log in logs
        }

    def _read_segments(self, seen: _Seen, partitions: list[int]) -> None:
        """Reads the segments of those logs that were not looked at closely before."""
        found: dict[int, list[Segment]] = {p: [] for p in partitions if p not in seen.segments}
        for segment in self.warehouse.store.segments(seen.state, list(found)) if found else ():
            found[segment.partition].append(segment)
        seen.segments |= {partition: tuple(segments) for partition, segments in found.items()}
