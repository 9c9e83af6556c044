"""What a sweep may delete, and what has to happen before it does (C6, C45).

once named     `versions.retention.ms` after the last commit that stopped naming it
never named    once its last change is older than `sweep.grace.ms`, and its run writes no heartbeat

A file that no version has named may still be named by a pending commit: of a run that was
suspended, or that takes long. So before such files are deleted, a commit of the sweep

    abandons their runs     from then on the gate refuses their commits
    moves the version       commits staged for an earlier version can no longer land
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.settings.units import format_bytes
from lithify.model.stored_file import Closing, FileKind, NamedFiles, StoredFile
from lithify.reports.topic_space import SweptFile

HEARTBEATS_PER_GRACE = 4
"""Heartbeats of a run within `sweep.grace.ms`, so that three may be late or lost."""

RUNS_AT_ONCE = 1_000
"""The most runs that one sweep abandons: every commit copies their ids. Files of others wait for the next sweep."""

RUNS_REMEMBERED = 100
"""The latest abandoned runs are remembered, even when their files are deleted. A run that resumes after
more sweeps gets the error that it expired, and not that a file of its own is missing."""

UNUSUAL_SEGMENTS = 20
"""With at least this many segments, a sweep that deletes more than half of all bytes stored needs `--allow-unusual`."""


_NAMED_BY_COMMITS = (FileKind.OUTPUT, FileKind.ATTEMPT)


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The files that may be deleted now."""

    replaced: tuple[SweptFile, ...] = ()
    """Files that versions have named: no commit will again."""
    unnamed: tuple[SweptFile, ...] = ()
    """Files that a pending commit could still name: the version has to move first."""
    abandon: tuple[str, ...] = ()
    """The runs that have written those, and that have to be abandoned first."""
    unusual: str = ""
    """Why a person should check first, or nothing."""
    stored_bytes: int = 0
    """Of the data files that versions name."""
    metadata_bytes: int = 0
    """Of the other files that are named."""
    waiting: tuple[StoredFile, ...] = ()
    """Files that no version names either, and that may not be deleted yet."""

    @property
    def files(self) -> tuple[SweptFile, ...]:
        return self.replaced + self.unnamed


def plan_sweep(
    stored: Sequence[StoredFile],
    named: NamedFiles,
    closings: Mapping[str, Closing],
    settings: TopicSettings,
    now_ms: int,
) -> SweepPlan:
    """Judges every file of a topic's folder."""
    alive = _alive(stored, settings, now_ms)
    going = [
        file
        for file in stored
        if file.kind is not FileKind.FOREIGN
        and file.path not in named
        and (file.kind is not FileKind.OUTPUT or file.run_id not in alive or file.path in closings)
        and may_be_swept(file, closings.get(file.path), settings, now_ms)
    ]
    uncommitted = [f for f in going if f.kind is FileKind.OUTPUT and not _was_named(closings.get(f.path))]
    abandon = sorted({file.run_id for file in uncommitted})[:RUNS_AT_ONCE]
    waiting = {f.path for f in uncommitted if f.run_id not in abandon}
    going = [file for file in going if file.path not in waiting]
    fenced = {f.path for f in going if f.kind in _NAMED_BY_COMMITS and not _was_named(closings.get(f.path))}
    swept = {file.path: _swept(file, closings.get(file.path)) for file in going}
    ours = [file for file in stored if file.kind is not FileKind.FOREIGN]
    kept = [file for file in ours if file.path in named]
    return SweepPlan(
        replaced=tuple(file for path, file in swept.items() if path not in fenced),
        unnamed=tuple(file for path, file in swept.items() if path in fenced),
        abandon=tuple(abandon),
        unusual=_unusual(stored, [f for f in uncommitted if f.path not in waiting]),
        stored_bytes=sum(file.size_bytes for file in kept if file.is_data),
        metadata_bytes=sum(file.size_bytes for file in kept if not file.is_data),
        waiting=tuple(file for file in ours if file.path not in named and file.path not in swept),
    )


def run_of(path: str) -> str:
    """The run that wrote a segment: in its name the offset comes first, then the run."""
    name = path.rpartition("/")[2]
    return name.split("-")[1] if name.count("-") else name


def may_be_swept(file: StoredFile, closing: Closing | None, settings: TopicSettings, now_ms: int) -> bool:
    """Whether an unnamed file may be deleted. `closing` is None if no version is known to have named it."""
    past_grace = now_ms > file.modified_ms + settings.sweep_grace_ms
    if closing is None:
        return past_grace
    return now_ms >= closing.at_ms + settings.versions_retention_ms and (closing.was_named or past_grace)


def lost_from_listing(before: NamedFiles, after: NamedFiles, stored: Iterable[StoredFile]) -> str | None:
    """A file that was named before and after the folder was listed and that the list lacks, if there is one.

    Then the list is not of this topic's folder, or a file is lost: in neither case may anything be deleted.
    """
    listed = {file.path for file in stored}
    return min((before.needed & after.needed) - listed, default=None)


def still_abandoned(abandoned: Collection[str], stored: Iterable[StoredFile], named: NamedFiles) -> set[str]:
    """Runs abandoned before that have unnamed files: another sweep may be deleting them."""
    return {
        file.run_id
        for file in stored
        if file.kind is FileKind.OUTPUT and file.run_id in abandoned and file.path not in named
    }


def remembered(known: Sequence[str], needed: Collection[str]) -> tuple[str, ...]:
    """Of abandoned runs, the latest last, those to keep: the latest, and all that are `needed`."""
    early = max(len(known) - RUNS_REMEMBERED, 0)
    return tuple(run_id for number, run_id in enumerate(known) if number >= early or run_id in needed)


def _alive(stored: Sequence[StoredFile], settings: TopicSettings, now_ms: int) -> set[str]:
    """The runs with a heartbeat within `sweep.grace.ms`."""
    return {
        file.run_id
        for file in stored
        if file.kind is FileKind.HEARTBEAT and now_ms <= file.modified_ms + settings.sweep_grace_ms
    }


def _unusual(stored: Sequence[StoredFile], uncommitted: Sequence[StoredFile]) -> str:
    segments = sum(f.size_bytes for f in stored if f.kind is FileKind.OUTPUT)
    going = sum(f.size_bytes for f in uncommitted)
    if len(uncommitted) < UNUSUAL_SEGMENTS or 2 * going <= segments:
        return ""
    return (
        f"{len(uncommitted)} files of {format_bytes(going)}, more than half of the {format_bytes(segments)} stored, "
        "were never named by any version"
    )


def _was_named(closing: Closing | None) -> bool:
    return closing is not None and closing.was_named


def _swept(file: StoredFile, closing: Closing | None) -> SweptFile:
    return SweptFile(file.path, file.size_bytes, file.modified_ms, None if closing is None else closing.at_ms)
