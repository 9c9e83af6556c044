"""What a commit other than an append or a round did to a topic: retain, truncate, undo, alter and the like.

The field names are the JSON keys. Bytes are compressed sizes, times epoch ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.segment import Segment, volume_of
from lithify.model.topic.edit import Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class LogCut:
    """One log, before and after. What was removed is what the log or its view no longer names."""

    partition: int
    log_start_offset: int
    log_start_offset_after: int
    first_dirty_offset: int
    first_dirty_offset_after: int
    log_end_offset: int
    log_end_offset_after: int
    segments_removed: int = 0
    records_removed: int = 0
    bytes_removed: int = 0
    segments_added: int = 0
    records_added: int = 0


@dataclass(frozen=True, slots=True)
class CutReport(Report):
    """What the verb did; logs that it did not change are not in it."""

    topic: str
    verb: Verb
    version: int
    changed: bool
    logs: tuple[LogCut, ...]
    now_ms: int
    now_given: bool = False
    undone_run_id: str | None = None
    """The `run_id` of the round that `undo` undid."""
    groups_error: str | None = None
    """Why `retain` could not read positions of groups: as if they had read nothing (C62)."""


def log_cut(before: LogState, after: LogState, removed: tuple[Segment, ...], added: tuple[Segment, ...] = ()) -> LogCut:
    """What became of one log."""
    return LogCut(
        partition=before.partition,
        log_start_offset=before.log_start_offset,
        log_start_offset_after=after.log_start_offset,
        first_dirty_offset=before.first_dirty_offset,
        first_dirty_offset_after=after.first_dirty_offset,
        log_end_offset=before.log_end_offset,
        log_end_offset_after=after.log_end_offset,
        segments_removed=len(removed),
        records_removed=volume_of(removed).records,
        bytes_removed=volume_of(removed).size_bytes,
        segments_added=len(added),
        records_added=volume_of(added).records,
    )


def cut_report(state: TopicState, verb: Verb, cuts: Sequence[LogCut], now_ms: int) -> CutReport:
    """What `verb` made of the logs in `cuts`, as of the version that it ended with."""
    return CutReport(str(state.name), verb, state.version, bool(cuts), tuple(cuts), now_ms)


@dataclass(frozen=True, slots=True)
class SweptFile:
    """A file that can be deleted, or was. `named_until_ms` is None for one that no version ever named."""

    path: str
    size_bytes: int
    modified_ms: int
    named_until_ms: int | None


@dataclass(frozen=True, slots=True)
class SweepReport(Report):
    """The files of a topic that can be deleted, or with `deleted` those that were."""

    topic: str
    deleted: bool
    files: tuple[SweptFile, ...]
    now_ms: int
    stored_bytes: int
    """Of the data files that versions name: the `stored_bytes` of the topic's `Space`."""
    metadata_bytes: int
    """Of the metadata, reports and other documents that are named."""
    waiting_files: int
    """Files that no version names either, and that may not go yet."""
    waiting_bytes: int
    expired_versions: tuple[int, ...] = ()
    """Versions past `versions.retention.ms` that expired, or that do with `--yes`, newest first."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting, as text, before and after."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AlterReport(Report):
    """What `topic alter` changed, settings under their dotted names."""

    topic: str
    version: int
    changed: bool
    settings: dict[str, SettingChange]
    partitions: int
    partitions_after: int
    logs_due: int
    """Logs that are due for a round once, since they have records and a setting changed (C43)."""
    own: tuple[str, ...] = ()
    """Settings that became the topic's own."""
    inherited: tuple[str, ...] = ()
    """Settings that were its own, and that it inherits from its stream now (C56)."""
