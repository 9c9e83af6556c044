"""Makes a replica what its source is at its newest version, in one commit (C63, C64, C65).

    source's newest version ─┐
    replica's newest version ┴─► same version? ─► done
                              └► what differs ─► files copied ─► the gate: still the same replica? ─► one commit

Versions in between are skipped. While files are copied the source may move on and sweep some of them; then the copy
starts over with the newest version, and uses what it has. Of two copies into one replica the later version remains.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lithify.errors import (
    ConflictError,
    DamagedError,
    RunExpiredError,
    TopicExistsError,
    UnknownTopicError,
    UnknownVersionError,
    WarehouseError,
)
from lithify.model.formats.features import features_of_copy
from lithify.model.formats.warehouse import check_holds
from lithify.model.names import TopicName
from lithify.model.replicas.replica_of import NOTHING_COPIED, ReplicaOf
from lithify.model.segment import Segment, by_file
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.source import StopAsked
from lithify.ports.store import Warehouse
from lithify.reports.replicas import MirrorReport, ReplicaLag
from lithify.rules.lifecycle.mirroring import (
    ByOrigin,
    Copied,
    Difference,
    TopicFiles,
    changed_logs,
    difference_of,
    mirrored,
)
from lithify.rules.lifecycle.own_views import Step
from lithify.rules.lifecycle.replicas import check_replicates, check_still_there, is_current, replica_of
from lithify.service.commit import commit
from lithify.service.creation import create_warehouse
from lithify.service.documents import put_source, put_source_ends, source_ends_of, source_of, warehouse_format
from lithify.service.replica.copied_files import Copies, MirrorRequest, copy_files

STARTS = 5
"""How often one copy starts over because its source or its replica has moved on."""

_MAY_HAVE_MOVED_ON = (DamagedError, UnknownVersionError, RunExpiredError)
"""What a side that moved on while it was read looks like: files of an old version are swept."""


class _OvertakenError(Exception):
    """Another copy into the same replica has committed first, or the replica was deleted and is another one now."""


def mirror(source: Warehouse, target: Warehouse, name: TopicName, request: MirrorRequest) -> MirrorReport:
    """Makes the topic `name` of `target` equal to the one in `source`; creates it if there is none.

    Nothing has changed after an error, but a new replica may be there, empty. Raises what `commit` raises, or

    - `PolicyError` if the target is not a replica of this source,
    - `ConflictError` if one of the two is not as the last copy left it,
    - `UnsupportedFormatError` if the target's warehouse has to be upgraded first (C66),
    - `DamagedError`, which names a file,
    - `InsufficientSpaceError`,
    - `UnknownTopicError` if the source has no such topic.
    """
    started_ms = target.clock.monotonic_ms()
    for start in range(1, STARTS + 1):
        theirs = request.load(source.store, name)
        ours = _load_or_create(target, theirs, request.source)
        if _version_of(ours) > theirs.version:  # another copy was faster, unless the source went back
            theirs = request.load(source.store, name)
        check_replicates(theirs, request.source, ours)
        try:
            report = _Copy(source, target, theirs, ours, request).run()
        except _OvertakenError:
            continue
        except _MAY_HAVE_MOVED_ON:
            if start == STARTS or not (_moved_on(source, theirs) or _moved_on(target, ours)):
                raise
            continue
        except WarehouseError:  # as of a folder that was deleted with its topic, or of a disk that is not mounted
            if start == STARTS or not _is_another(target, ours):
                raise
            continue
        return replace(report, duration_ms=target.clock.monotonic_ms() - started_ms)
    raise ConflictError(
        f"{name}: other copies into the replica committed first, {STARTS} times in a row",
        hint="let one daemon at a time copy into a replica; nothing was changed",
    )


def lag(source: Warehouse, target: Warehouse, name: TopicName, where: str) -> ReplicaLag:
    """How far the replica of a topic is behind its source in the warehouse `where`; copies nothing.

    Of a replica at the source's version it reads no manifest. Raises what `mirror` raises before it copies.
    """
    theirs = source.store.load(name)
    ours: TopicState | None = None
    with suppress(UnknownTopicError):
        ours = target.store.load(name)
    if ours is not None and _version_of(ours) > theirs.version:  # a copy was faster, unless the source went back
        theirs = source.store.load(name)
    known = None if ours is None else check_replicates(theirs, where, ours).version
    lacking = None if known == theirs.version else _lacking(source, target, theirs, ours)
    return ReplicaLag(
        topic=str(name),
        source_version=theirs.version,
        replica_version=known,
        lag_records=0 if lacking is None else lacking.records_to_copy,
        lag_bytes=0 if lacking is None else sum(segment.id_bytes for segment in lacking.to_copy),
        source_clock_ms=theirs.clock_ms,
    )


class _Copy:
    """From one version of the source into one version of the replica."""

    def __init__(
        self, source: Warehouse, target: Warehouse, theirs: TopicState, ours: TopicState, request: MirrorRequest
    ) -> None:
        self._source, self._target = source, target
        self._theirs, self._ours = theirs, ours
        self._request = request
        self._run_id = target.clock.new_id()

    def run(self) -> MirrorReport:
        """Copies and commits. Raises `_OvertakenError`, and what `mirror` raises."""
        theirs, ours = self._theirs, self._ours
        if ours.replica is not None and is_current(ours.replica, theirs, compact=self._request.compact):
            return self._report(ours, Copies({}), [])
        _check_holds(self._target, theirs)
        compared = self._compared(ours)
        try:
            copies = copy_files(self._source, self._target, ours, compared.difference, self._run_id, self._request)
        except StopAsked:
            return replace(self._report(ours, Copies({}), []), stopped=True)
        self._copy_document()
        committed: list[TopicEdit] = []

        def decide(newest: TopicState) -> TopicEdit | None:
            committed.clear()
            if newest.identity != ours.identity:  # so the files are in the folder of a topic that was deleted
                raise _OvertakenError
            if _version_of(newest) > theirs.version:  # so `theirs` is old: no sign that the source went back
                raise _OvertakenError
            known = check_replicates(theirs, self._request.source, newest)
            if is_current(known, theirs, compact=self._request.compact):
                return None
            if known.version != _version_of(ours):
                raise _OvertakenError
            # Rounds of the replica's own may have been committed meanwhile (C67).
            now = compared if newest == ours else self._compared(newest)
            if not now.difference.needs_only(copies.by_origin):
                raise _OvertakenError
            edit = now.edit(copies.by_origin, self._run_id, self._target.clock.now_ms())
            committed.append(edit)
            return edit

        state = commit(self._target, ours.name, self._run_id, decide)
        return self._report(state, copies, committed)

    def _compared(self, ours: TopicState) -> _Compared:
        """What a version of the replica lacks, and is to say once it has that."""
        says = replica_of(self._theirs, self._request.source, ours.replica, compact=self._request.compact)
        return _compared(self._source, self._target, Step(self._theirs, ours, says))

    def _copy_document(self) -> None:
        """What the source is itself a copy of, so that an ingest can continue once the replica is promoted."""
        copied = source_of(self._source.store, self._theirs)
        known = None
        with suppress(DamagedError):  # it is replaced
            known = source_of(self._target.store, self._ours)
        if copied is not None and copied != known:
            put_source(self._target.store, self._ours, copied)
        self._copy_ends()

    def _copy_ends(self) -> None:
        """What is known of its source's ends, which is true whatever it has of that (C71)."""
        ends, known = source_ends_of(self._source.store, self._theirs), None
        with suppress(DamagedError):  # it is replaced
            known = source_ends_of(self._target.store, self._ours)
        if ends and ends != known:
            put_source_ends(self._target.store, self._ours, ends)

    def _report(self, state: TopicState, copies: Copies, committed: list[TopicEdit]) -> MirrorReport:
        return MirrorReport(
            topic=str(state.name),
            source_version=self._theirs.version,
            replica_version=_version_of(state),
            version=state.version,
            changed=bool(committed),
            stopped=False,
            files_copied=len(copies.copied),
            bytes_copied=sum(segment.id_bytes for segment in copies.copied),
            files_reused=len(copies.reused),
            bytes_reused=sum(segment.id_bytes for segment in copies.reused),
            files_removed=sum(_files_removed(edit) for edit in committed),
            duration_ms=0,
        )


def _version_of(state: TopicState) -> int:
    """The version of its source that a replica has."""
    return NOTHING_COPIED if state.replica is None else state.replica.version


def _files_removed(edit: TopicEdit) -> int:
    """A data file that gets another mask remains."""
    changes = ((edit.remove, edit.add), (edit.view_remove, edit.view_add))
    return sum(len(by_file(removed).keys() - by_file(added).keys()) for removed, added in changes)


def _load_or_create(target: Warehouse, theirs: TopicState, where: str) -> TopicState:
    """The replica; one that has nothing yet, if there is none."""
    with suppress(UnknownTopicError):
        return target.store.load(theirs.name)
    create_warehouse(target.store)
    _check_holds(target, theirs)
    says: ReplicaOf = replace(replica_of(theirs, where), version=NOTHING_COPIED)
    with suppress(TopicExistsError):  # another copy has created it right now
        return target.store.create_topic(
            NewTopic(
                theirs.name,
                theirs.original_name,
                theirs.settings,
                len(theirs.logs),
                theirs.created_ms,
                theirs.own_settings,
                says,
            )
        )
    return target.store.load(theirs.name)


def _check_holds(target: Warehouse, theirs: TopicState) -> None:
    """Raises `UnsupportedFormatError` if a warehouse may not have a copy of this version before an upgrade (C66)."""
    features = features_of_copy(theirs)
    if features:
        check_holds(target.store.where, warehouse_format(target.store), str(theirs.name), features)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A version of the source, one of the replica, and what differs in the logs that differ."""

    step: Step
    difference: Difference
    segments: tuple[Segment, ...]

    def edit(self, copies: ByOrigin, run_id: str, now_ms: int) -> TopicEdit:
        return mirrored(self.step, Copied(self.difference, copies, self.segments), run_id, now_ms)


def _compared(source: Warehouse, target: Warehouse, step: Step) -> _Compared:
    """What the replica lacks. Opens the manifests of logs that differ."""
    partitions = changed_logs(step)
    there = [partition for partition in partitions if partition in step.replica.partitions]
    ours = _files(target, step.replica, there)
    difference = difference_of(_files(source, step.source, partitions), ours)
    check_still_there(step.source, step.replica, difference.remove)
    return _Compared(step, difference, ours.segments)


def _lacking(source: Warehouse, target: Warehouse, theirs: TopicState, ours: TopicState | None) -> Difference:
    """What the replica, if there is one, lacks."""
    if ours is None or ours.replica is None:
        return difference_of(_files(source, theirs, theirs.partitions), TopicFiles())
    return _compared(source, target, Step(theirs, ours, ours.replica)).difference


def _files(warehouse: Warehouse, state: TopicState, partitions: Sequence[int]) -> TopicFiles:
    if not partitions:
        return TopicFiles()
    return TopicFiles(warehouse.store.segments(state, partitions), warehouse.store.view(state, partitions))


def _is_another(warehouse: Warehouse, state: TopicState) -> bool:
    """Whether another topic has the name now. Raises `UnknownTopicError` for one that is gone.

    A second start would recreate it, in the mount point of a disk that is not mounted perhaps.
    """
    return warehouse.store.load(state.name).identity != state.identity


def _moved_on(warehouse: Warehouse, state: TopicState) -> bool:
    """Whether a topic is at another version now, or another one, or gone."""
    try:
        newest = warehouse.store.load(state.name)
    except UnknownTopicError:
        return True
    return (newest.identity, newest.version) != (state.identity, state.version)
