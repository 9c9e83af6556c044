"""Work on a topic besides rounds, each with its own interval: retention, expiry of versions, sweep.

    retention   when a look finds whole segments past retention         (C24)
    upkeep      every hour by default: expires versions after
                versions.retention.ms, deletes files no version names   (C6, C7)

The first upkeep after a start is at once, and sweeps only where it has expired something. So versions expire even if
cleaners run `--once` or are restarted all the time. A start lists no folder of a topic without such versions.

If upkeep finds nothing to do and there are no new commits, the interval of the topic doubles, up to a
day. If a retained version is past versions.retention.ms earlier, the next upkeep is then. One cleaner does the upkeep
of a catalog: the owner of the lease `role`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.daemons.cleaner.work_finder import WorkFinder
from lithify.errors import PolicyError, UnknownTopicError
from lithify.errors.defects import as_lithify_error
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind
from lithify.rules.schedule.agenda import TopicWork
from lithify.service.change.expire import expire_versions, next_expiry_ms
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep

SELDOM_MS = 86_400_000
"""Between two visits of a topic without commits, at most."""


@dataclass(frozen=True, slots=True)
class Visit:
    """When a topic is visited next, the gap between visits, and its version at the last look."""

    next_ms: int
    gap_ms: int
    version: int
    is_first: bool = False
    """Whether it is the first one after a start, which only expires versions and what only they name."""


@dataclass(slots=True)
class Chores:
    """Does one chore per call; several threads may call. Keeps one small entry for each topic in memory."""

    warehouse: Warehouse
    leases: LeaseKeeper
    finder: WorkFinder
    reporter: EventReporter
    role: str
    """Name of the lease for the upkeep of this catalog."""
    interval_ms: int
    visits: dict[TopicName, Visit] = field(default_factory=dict)

    def retain(self, work: TopicWork) -> None:
        """Drops the segments that are past retention, of the logs that no other cleaner works on."""
        leases = work.leases(work.required.retains)
        taken = self.leases.take(leases)
        if not taken:
            return
        try:
            report = retain(self.warehouse, work.name, partitions=[leases[lease] for lease in taken])
            if report.changed:
                self.reporter.retained(work.name, report)
            self.finder.succeeded(work.name)
        except (UnknownTopicError, PolicyError):
            pass  # deleted, or altered: the next look assesses it as it is
        except Exception as error:
            self.finder.back_off(work.name, as_lithify_error(error, work.name), self.warehouse.clock.now_ms())
        finally:
            self.leases.release(taken)

    def next_upkeep(self, now_ms: int) -> TopicName | None:
        """The topic whose upkeep is due for the longest time, and schedules its next; None without the role."""
        if not self.leases.holds(self.role):
            return None
        name = min(self.visits, key=lambda name: self.visits[name].next_ms, default=None)
        if name is None or self.visits[name].next_ms > now_ms:
            return None
        visit = self.visits[name]
        # The second one is spread over the interval by name, alike after each start.
        gap_ms = crc32(str(name).encode()) % self.interval_ms if visit.is_first else visit.gap_ms
        self.visits[name] = replace(visit, next_ms=now_ms + gap_ms)
        return name

    def seen(self, versions: Mapping[TopicName, int], now_ms: int) -> None:
        """Takes the topics of a look with their versions; schedules visits of new and changed topics soon."""
        visits: dict[TopicName, Visit] = {}
        for name, version in versions.items():
            visit = self.visits.get(name)
            if visit is None:
                visit = Visit(now_ms, self.interval_ms, version, is_first=True)
            else:  # at most one gap from now, also if the clock was ahead and has been corrected
                gap_ms = visit.gap_ms if visit.version == version else self.interval_ms
                visit = Visit(min(visit.next_ms, now_ms + gap_ms), gap_ms, version, is_first=visit.is_first)
            visits[name] = visit
        self.visits = visits
        if not self.leases.holds(self.role):
            self.leases.take([self.role])

    def _was_first(self, name: TopicName) -> bool:
        """Whether the visit under way is the first one; the next is not."""
        visit = self.visits.get(name)
        if visit is None or not visit.is_first:
            return False
        self.visits[name] = replace(visit, is_first=False)
        return True

    def upkeep(self, name: TopicName) -> None:
        """Expires old versions, then deletes the files that no version names any more."""
        try:
            expired = expire_versions(self.warehouse, name)
            if expired is not None:
                self.reporter.report(EventKind.EXPIRED, name, versions=list(expired.expired))
            if self._was_first(name) and expired is None:
                return
            swept = sweep(self.warehouse, name, delete=True)
            expiry_ms = next_expiry_ms(self.warehouse, name)
        except UnknownTopicError:
            return
        except Exception as error:
            self.reporter.error(name, as_lithify_error(error, name))
            return
        if swept.files:
            self.reporter.report(EventKind.SWEPT, name, files=len(swept.files), bytes=swept.size_bytes)
        visit = self.visits.get(name)
        if visit is None:
            return
        if not swept.files and expired is None:
            gap_ms = min(2 * visit.gap_ms, max(SELDOM_MS, self.interval_ms))
            visit = Visit(visit.next_ms - visit.gap_ms + gap_ms, gap_ms, visit.version)
        if expiry_ms is not None and self.warehouse.clock.now_ms() < expiry_ms < visit.next_ms:
            visit = replace(visit, next_ms=expiry_ms)
        self.visits[name] = visit
