"""What a replica lacks of a version of its source, and the one commit that gives it (C63, C65).

    source     log  a b'd      view  a d        a file and its copies have one origin, whatever their paths
    replica    log  a b c      view  a
               add  b'd   remove  b c   view: add  d          files to copy: b' d, each once

A mask is a file with an origin of its own: its data file is not copied again for it. Only its size may be another one
at the replica, as it has the path of the data file there.

Only logs whose state differs are compared: whatever changes the files of a log changes its state, or at least the run
that led to it. A view of the replica's own remains, or is dropped, as `own_views` has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from lithify.errors import DamagedError
from lithify.model.formats.features import features_of_copy
from lithify.model.replicas.file_names import is_copy, origin
from lithify.model.segment import Segment, by_file, records_left, segments_of, without
from lithify.model.stored_file import FileKind, StoredFile
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LogState
from lithify.rules.lifecycle.own_views import LogFiles, Step, followed, keeps_view, last_run, same_log, settings_of_copy

ByOrigin = Mapping[str, Segment]
"""Data files, as segments without masks, and masks, as segments that have them, by the origins of these files."""


@dataclass(frozen=True, slots=True)
class TopicFiles:
    """The segments of some logs of a topic at one version, and of their compacted views."""

    segments: tuple[Segment, ...] = ()
    view: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """What a replica lacks of its source, and what it has more, as segments of the side that has them."""

    add: tuple[Segment, ...]
    remove: tuple[Segment, ...]
    view_add: tuple[Segment, ...]
    view_remove: tuple[Segment, ...]
    known: ByOrigin
    """What the replica names of the origins in question, in a log or a view."""

    @property
    def to_copy(self) -> tuple[Segment, ...]:
        """The files of the source that the replica has no copy of, each once: see `ByOrigin`."""
        wanted = by_origin((*self.add, *self.view_add))
        return tuple(segment for key, segment in wanted.items() if key not in self.known)

    def needs_only(self, copies: ByOrigin) -> bool:
        """Whether nothing is lacking once these files are there: masks belong to the data files that are named."""
        files = {**self.known, **copies}
        return all(
            (key := origin(segment.id)) in copies
            and (file := files.get(origin(segment.path))) is not None
            and copies[key].path == file.path
            for segment in self.to_copy
        )

    @property
    def records_to_copy(self) -> int:
        """The records of data files that the replica has no copy of, without those that are masked at the source."""
        return records_left(s for s in (*self.add, *self.view_add) if origin(s.path) not in self.known)


def changed_logs(step: Step) -> tuple[int, ...]:
    """The partitions whose logs the replica does not have as the source does, or whose rounds are to change."""
    everything = step.changes_rounds
    return tuple(log.partition for log in step.source.logs if everything or not same_log(log, step.replica))


def difference_of(source: TopicFiles, target: TopicFiles) -> Difference:
    """Compares the files of logs. Raises `DamagedError` if a file and its copy are not the same."""
    known = by_origin((*target.view, *target.segments))
    for key, segment in by_origin((*source.view, *source.segments)).items():
        if key in known and not _is_copy_of(known[key], segment):
            raise DamagedError(
                f"{known[key].id}: the metadata of the replica does not match the metadata of its source for "
                f"{segment.id}",
                hint="compare both with `lithify replica verify`; nothing was changed",
            )
    return Difference(
        add=_without(source.segments, target.segments),
        remove=_without(target.segments, source.segments),
        view_add=_without(source.view, target.view),
        view_remove=_without(target.view, source.view),
        known=known,
    )


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy has found and made: what differs, the new files, and the replica's segments before it."""

    difference: Difference
    copies: ByOrigin
    segments: tuple[Segment, ...]
    """Of the logs that change."""


def mirrored(step: Step, copied: Copied, run_id: str, now_ms: int) -> TopicEdit:
    """The commit that makes the replica equal to its source.

    The states of the logs are the source's. Only the runs that led to them are the replica's: by them a commit
    whose response was lost is found (C6). Each follows the source's run that it copied.
    """
    source, target, difference = step.source, step.replica, copied.difference
    files = {**difference.known, **copied.copies}

    def named(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        return tuple(files[origin(segment.id)] for segment in segments)

    add = named(difference.add)
    moved = {p: segments_of((*add, *difference.remove), p) for p in changed_logs(step)}
    logs = {p: _changed_log(step, copied, add, moved[p], p) for p in moved}
    settings, own = settings_of_copy(source, step.says)
    clocks = [clock for clock in (source.clock_ms, target.clock_ms) if clock is not None]
    return TopicEdit(
        run_id=run_id,
        time_ms=now_ms,
        logs=logs,
        add=add,
        remove=difference.remove,
        view_add=named(difference.view_add),
        view_remove=tuple(s for s in difference.view_remove if not keeps_view(step, s.partition, moved[s.partition])),
        settings=None if settings == target.settings else settings,
        own_settings=None if own == target.own_settings else own,
        verb=Verb.REPLICATE,
        clock_ms=max(clocks, default=now_ms),
        written=tuple(copied.copies.values()),
        features=features_of_copy(source),
        origin=source.origin,
        replica=step.says,
    )


def reusable(
    stored: Iterable[StoredFile], wanted: Iterable[Segment], abandoned: Collection[str]
) -> tuple[Segment, ...]:
    """Files of the replica's folder that may be copies of `wanted` ones, one of each, as segments.

    The caller still has to check whether a version has ever named them, and what is in them. It also has to check which
    data file a mask belongs to: its segment has the path at the source. An abandoned run can no longer commit (C45).
    """
    files, copies = {origin(segment.id): segment for segment in wanted}, dict[str, Segment]()
    for file in stored:
        if file.kind is FileKind.OUTPUT and file.run_id not in abandoned and is_copy(file.path):
            segment = files.get(key := origin(file.path))
            if segment is None:
                continue
            if segment.mask is not None:
                copies[key] = replace(segment, mask=replace(segment.mask, path=file.path, size_bytes=file.size_bytes))
            elif segment.size_bytes == file.size_bytes:
                copies[key] = replace(segment, path=file.path)
    return tuple(copies.values())


def _changed_log(
    step: Step, copied: Copied, add: tuple[Segment, ...], moved: tuple[Segment, ...], partition: int
) -> LogState:
    """The state of a log after the copy, with the runs of the replica and the one of the source."""
    theirs, target = step.source.log(partition), step.replica
    if step.says.copied:
        left = (
            *without(segments_of(copied.segments, partition), copied.difference.remove),
            *segments_of(add, partition),
        )
        log = followed(step, partition, LogFiles(tuple(sorted(left, key=lambda s: s.base_offset)), moved))
    else:
        log = theirs
    own = target.log(partition).run_ids if partition in target.partitions else ()
    return replace(log, run_ids=(*own, last_run(theirs)))


def by_origin(segments: Iterable[Segment]) -> ByOrigin:
    """The files of segments."""
    return {origin(path): segment for path, segment in by_file(segments).items()}


def _is_copy_of(ours: Segment, theirs: Segment) -> bool:
    """Whether the metadata say the same of two files of one origin, and of the data file if they are masks."""
    mask = ours.mask
    if mask is not None and theirs.mask is not None:
        mask = replace(theirs.mask, dead=mask.dead)
    same_file = origin(ours.path) == origin(theirs.path)
    return same_file and replace(ours, path=theirs.path, mask=mask) == theirs


def _without(segments: Iterable[Segment], others: Iterable[Segment]) -> tuple[Segment, ...]:
    """`segments` that are not copies of `others`, nor the other way round, with the same masks."""
    there = {origin(segment.id) for segment in others}
    return tuple(segment for segment in segments if origin(segment.id) not in there)
