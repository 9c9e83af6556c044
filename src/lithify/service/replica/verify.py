"""Holds a replica against its source, or against what it says itself: file by file, count by count (C63, C65).

    by itself        metadata: its own laws      every named file: read whole, pages, facts, order of records
    with a source    the same version's state    every file that both name: the same bytes

A replica in a plain folder or bucket is a backup, and this is how it is checked, even if its source is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from lithify.errors import DamagedError, UnknownVersionError, VersionSweptError
from lithify.model.finding import Finding, FindingKind
from lithify.model.names import TopicName
from lithify.model.segment import Segment, by_file, records_left
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.replicas import ReplicaVerification
from lithify.reports.verification import FINDINGS_KEPT
from lithify.rules.lifecycle.mirroring import TopicFiles
from lithify.rules.lifecycle.replicas import check_promotable, check_same_source
from lithify.rules.proof.consistency import metadata_findings
from lithify.rules.proof.replica import copies_of, file_findings, state_findings
from lithify.service.replica.copied_files import COPIES_AT_ONCE, checksum
from lithify.waits.parallel import parallel


def verify_replica(
    source: Warehouse | None,
    target: Warehouse,
    name: TopicName,
    tell: Callable[[int, int], None] = lambda _done_bytes, _all_bytes: None,
) -> ReplicaVerification:
    """Checks the newest version of a replica; without `source` by what it says itself.

    A source that has moved on and does not retain the replica's version is compared as far as both name the same files.
    `tell` gets the bytes read and those to read, from several threads. Raises `PolicyError` for a topic that is not a
    replica of this source or has nothing yet, `VersionSweptError` if one of the two was swept meanwhile,
    `UnknownTopicError` or `WarehouseError`.
    """
    started_ms = target.clock.monotonic_ms()
    ours = _Side.newest(target, name)
    known = check_promotable(ours.state)
    sides = [ours]
    findings = list(ours.by_metadata())
    if not known.is_intact(ours.state.version):
        problem = (
            f"a program that does not support replicas has written to the replica after version {known.written_at}"
        )
        findings.append(Finding(0, FindingKind.WRONG_METADATA, f"{name}: {problem}"))
    if source is not None:
        theirs = _Side.newest(source, name).at(known.version)
        check_same_source(theirs.state, ours.state)
        sides.append(theirs)
        if theirs.state.version == known.version:
            findings += state_findings(theirs.state, ours.state)
            there = replace(ours.files, view=()) if known.compacts else ours.files  # that view is its own (C67)
            findings += file_findings(theirs.files, there)
    work = _Work(ours, sides[-1] if len(sides) > 1 else None, tell)
    findings += work.findings()
    for side in sides:
        side.check_not_swept(findings)
    return ReplicaVerification(
        topic=str(name),
        version=ours.state.version,
        replica_version=known.version,
        source_version=sides[-1].state.version if len(sides) > 1 else None,
        findings=tuple(sorted(set(findings), key=_by_place)[:FINDINGS_KEPT]),
        more_findings=len(findings) > FINDINGS_KEPT,
        files=len(work.files),
        records=work.records,
        bytes_read=work.done_bytes,
        duration_ms=target.clock.monotonic_ms() - started_ms,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """A source or a replica, at one version."""

    warehouse: Warehouse
    state: TopicState
    files: TopicFiles = field(default_factory=TopicFiles)

    @staticmethod
    def newest(warehouse: Warehouse, name: TopicName) -> _Side:
        warehouse.store.clear_file_cache()
        return _Side(warehouse, warehouse.store.load(name))._read()

    def at(self, version: int) -> _Side:
        """The topic at that version, if it is retained; else at this one."""
        if version == self.state.version:
            return self
        try:
            return _Side(self.warehouse, self.warehouse.store.load_version(self.state.name, version))._read()
        except UnknownVersionError:
            return self

    def by_metadata(self) -> Iterator[Finding]:
        """What is wrong with it by its own laws."""
        for log in self.state.logs:
            yield from metadata_findings(self.state, log, self.files.segments, self.files.view)

    def check_not_swept(self, findings: list[Finding]) -> None:
        """Raises `VersionSweptError` for missing files that no version names any more (C7)."""
        there = by_file((*self.files.segments, *self.files.view))
        missing = [f.path for f in findings if f.kind is FindingKind.FILE_MISSING and f.path in there]
        named = self.warehouse.store.named_files(self.state.name) if missing else ()
        for path in missing:
            if path not in named:
                raise VersionSweptError(
                    f"{self.state.name}: version {self.state.version} was swept meanwhile: {path} no longer exists",
                    hint="verify again; no damage was found",
                )

    def _read(self) -> _Side:
        store, state = self.warehouse.store, self.state
        return _Side(self.warehouse, state, TopicFiles(store.segments(state), store.view(state)))


class _Work:
    """Reads every file of a replica, and the files of its source that it is compared with."""

    def __init__(self, ours: _Side, theirs: _Side | None, tell: Callable[[int, int], None]) -> None:
        segments = (*ours.files.segments, *ours.files.view)
        self.files = tuple(by_file(segments).values())
        self.records = records_left(segments)
        self.done_bytes = 0
        self._ours, self._theirs = ours, theirs
        self._originals: Mapping[str, Segment] = {} if theirs is None else copies_of(theirs.files, ours.files)
        self._tell = tell
        self._all_bytes = sum(s.id_bytes * (3 if s.id in self._originals else 1) for s in self.files)
        self._lock = Lock()

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the files."""
        for findings in parallel(self._of_file, self.files, COPIES_AT_ONCE):
            yield from findings

    def _of_file(self, segment: Segment) -> tuple[Finding, ...]:
        findings = self._by_itself(segment)
        original = self._originals.get(segment.id)
        if original is None:
            return findings
        try:
            same = self._content(self._theirs, original) == self._content(self._ours, segment)
        except DamagedError as error:  # one of them; what the replica's own check found says the same of it
            return findings or (_damage(error, segment, original),)
        if same:
            return findings
        message = f"{segment.id}: it is not the same as {original.id} of the source"
        return (*findings, Finding(segment.partition, FindingKind.FILE_DAMAGED, message, path=segment.id))

    def _by_itself(self, segment: Segment) -> tuple[Finding, ...]:
        if segment.mask is None:
            findings = self._ours.warehouse.files.findings(segment)
            self._read(segment.size_bytes)
            return findings
        try:
            self._content(self._ours, segment)
        except DamagedError as error:
            return (_damage(error, segment, segment),)
        return ()

    def _content(self, side: _Side | None, segment: Segment) -> object:
        """What is the same of a file and its copy: bytes, and of masks the positions, as the path is another one."""
        assert side is not None  # there are originals only with a source
        files = side.warehouse.files
        content = checksum(files.pieces(segment)) if segment.mask is None else files.hidden(segment)
        self._read(segment.id_bytes)
        return content

    def _read(self, size_bytes: int) -> None:
        with self._lock:
            self.done_bytes += size_bytes
            self._tell(self.done_bytes, self._all_bytes)


def _damage(error: DamagedError, ours: Segment, theirs: Segment) -> Finding:
    """What reading one of two files has found."""
    missing = isinstance(error.__cause__, FileNotFoundError)
    kind = FindingKind.FILE_MISSING if missing else FindingKind.FILE_DAMAGED
    return Finding(ours.partition, kind, error.message, path=ours.id if ours.id in error.message else theirs.id)


def _by_place(finding: Finding) -> tuple[int, str, str]:
    return finding.partition, finding.kind.value, finding.message
