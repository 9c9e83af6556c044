"""The trail of a topic from a retained version to the newest: the versions that `verify` compares.

kept 7 ──round──► ... kept 12 ──truncate──► ... kept 15 ──round──► ... 18, the newest
     └── proof ──┘   └──── proof ─────┘   └─── proof ───┘
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lithify.errors import UnknownVersionError
from lithify.model.names import TopicName
from lithify.model.segment import Segment, segments_of
from lithify.model.topic.edit import KeptVersion, Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import LogReport, RoundReport
from lithify.rules.lifecycle.undoing import LogFiles
from lithify.rules.proof.transition import LogVersion, Transition
from lithify.service.documents import reports_of

REMOVING = (Verb.COMPACT, Verb.RETAIN, Verb.TRUNCATE, Verb.UNCOMPACT, Verb.UNDO)
"""Verbs that may remove segments from a log. Segments removed by another verb are reported as lost."""


@dataclass(frozen=True, slots=True)
class VersionSeen:
    """A version with all of its segments, and, if it is not the newest, the commit that closed it."""

    state: TopicState
    segments: tuple[Segment, ...]
    view: tuple[Segment, ...]
    closed: KeptVersion | None = None

    def log(self, partition: int) -> LogVersion:
        """One log of it; a log that the topic did not have yet is empty."""
        known = partition in self.state.partitions
        return LogVersion(
            version=self.state.version,
            state=self.state.log(partition) if known else LogState(partition),
            settings=self.state.round_settings,
            files=LogFiles(segments_of(self.segments, partition), segments_of(self.view, partition)),
        )


@dataclass(frozen=True, slots=True)
class Trail:
    """The versions from the one compared with to the newest, and what happened in between."""

    versions: tuple[VersionSeen, ...]
    restorable: tuple[VersionSeen, ...]
    """Retained versions that an `undo` on the way went back to."""
    reports: tuple[RoundReport, ...]

    def transitions(self, partition: int) -> Iterator[Transition]:
        """The transitions of one log, oldest first."""
        real = [v for index, v in enumerate(self.versions) if index == 0 or v.closed is None or _removes(v.closed)]
        removing_none = [v for v in self.versions if v not in real]
        for before, after in pairwise(real):
            between = [v for v in removing_none if before.state.version < v.state.version < after.state.version]
            yield self._transition(before, after, tuple(between), partition)

    def _transition(
        self, before: VersionSeen, after: VersionSeen, between: tuple[VersionSeen, ...], partition: int
    ) -> Transition:
        assert before.closed is not None  # only the newest is open
        verb = before.closed.verb
        round_, restored, now_ms = None, None, 0
        if verb is Verb.COMPACT:
            report = self._report(before.state.version + 1)
            round_, now_ms = _part(report, partition), 0 if report is None else report.now_ms
        if verb is Verb.UNDO:
            report = undone_by(self.reports, before.state)
            round_ = _part(report, partition)
            restored = None if report is None else self._version(report.version - 1)
        return Transition(
            before=before.log(partition),
            after=after.log(partition),
            verb=verb,
            round_=round_,
            now_ms=now_ms,
            in_between=tuple(version.log(partition) for version in between),
            restored=None if restored is None else restored.log(partition),
        )

    def _report(self, version: int) -> RoundReport | None:
        return next((report for report in self.reports if report.version == version), None)

    def _version(self, version: int) -> VersionSeen | None:
        return next((v for v in (*self.versions, *self.restorable) if v.state.version == version), None)


def trail_to(warehouse: Warehouse, newest: VersionSeen, against: int | None) -> Trail:
    """The trail from `against`, or from before the last round. Raises `UnknownVersionError` or `DamagedError`."""
    name = newest.state.name
    kept = _since_copies(warehouse.store.versions(name))
    reports = tuple(reports_of(warehouse.store, newest.state))
    start = _start(name, kept, against)
    on_the_way = [version for version in kept if start is not None and version.version >= start]
    _check_reported(name, on_the_way, reports)
    seen = {version.version: _seen(warehouse, name, version) for version in on_the_way}
    older = {version.version: version for version in kept if version.version not in seen}
    undone = (undone_by(reports, v.state) for v in seen.values() if v.closed and v.closed.verb is Verb.UNDO)
    back = {report.version - 1 for report in undone if report is not None} & older.keys()
    restorable = tuple(_seen(warehouse, name, older[version]) for version in sorted(back))
    return Trail((*seen.values(), newest), restorable, reports)


def undone_by(reports: tuple[RoundReport, ...], before: TopicState) -> RoundReport | None:
    """The report of the round that an `undo` of `before` undid: the newest that was not undone."""
    stood = {log.last_round for log in before.logs} - {""}
    return next((r for r in reports if r.run_id in stood and r.version <= before.version), None)


def _since_copies(kept: Sequence[KeptVersion]) -> list[KeptVersion]:
    """Retained versions, oldest first, since a copy last made a replica equal to its source (C63)."""
    replaced = max((version.version for version in kept if version.verb is Verb.REPLICATE), default=0)
    return sorted((v for v in kept if v.version > replaced), key=lambda version: version.version)


def _start(name: TopicName, kept: list[KeptVersion], against: int | None) -> int | None:
    if against is None:
        rounds = [version.version for version in kept if version.verb is Verb.COMPACT]
        return max(rounds, default=max((version.version for version in kept), default=None))
    if against not in [version.version for version in kept]:
        known = ", ".join(str(version.version) for version in kept)
        raise UnknownVersionError(
            f"{name}: version {against} is not retained",
            hint=f"retained: {known or 'none; a round retains the version before it until that expires'}",
        )
    return against


def _check_reported(name: TopicName, kept: list[KeptVersion], reports: tuple[RoundReport, ...]) -> None:
    """A round can be planned again only if its report, which has its time, is still there."""
    known = {report.version for report in reports}
    unknown = [v.version for v in kept if v.verb is Verb.COMPACT and v.version + 1 not in known]
    if unknown:
        raise UnknownVersionError(
            f"{name}: the report of the round that closed version {unknown[-1]} is no longer stored",
            hint="compare with a later version",
        )


def _seen(warehouse: Warehouse, name: TopicName, kept: KeptVersion) -> VersionSeen:
    state = warehouse.store.load_version(name, kept.version)
    return VersionSeen(state, warehouse.store.segments(state), warehouse.store.view(state), kept)


def _removes(closed: KeptVersion) -> bool:
    return closed.verb in REMOVING


def _part(report: RoundReport | None, partition: int) -> LogReport | None:
    """What a round changed in one log, if anything."""
    if report is None:
        return None
    return next((log for log in report.logs if log.partition == partition and log.changed), None)
