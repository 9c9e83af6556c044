"""A round over the log directory of a broker that does not run, one log after the other (KAFKA-631).

    lock ─► scans ─► plan ─► key pass ─► groups copied, some at once ─► swapped in, in order ─► checkpoint
                                         ╰────── until no group is left ──────────────────╯

Before the groups of a log are all swapped in, its checkpoint is the old one: a round that was ended, or a broker's own
cleaner, begins there again.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from lithify.columnar.files.replaced import replacing
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.errors import DamagedError, InsufficientSpaceError, InvalidInputError, LithifyError, RefusedError
from lithify.errors.defects import as_lithify_error
from lithify.kafka_log.cleaning.batch_cleaner import CleanRules
from lithify.kafka_log.cleaning.clean_plan import CleanPlan, SegmentFacts, clean_plan
from lithify.kafka_log.cleaning.clean_settings import CleanSettings
from lithify.kafka_log.cleaning.group_cleaner import CleanedGroup, GroupSource, SegmentGroup, cleaned_group
from lithify.kafka_log.cleaning.producers import LastBatches, active_producers
from lithify.kafka_log.cleaning.segment_facts import facts_of
from lithify.kafka_log.cleaning.segment_keys import MOST_SEGMENTS, KeysOfFile, SegmentKeys
from lithify.kafka_log.cleaning.swapping import Files, FolderFiles, has_leftovers, recover, swap_in
from lithify.kafka_log.directories.checkpoints import CLEANER, with_offset
from lithify.kafka_log.directories.described import described, reading
from lithify.kafka_log.directories.folders import LogFolder, held, log_directory
from lithify.kafka_log.directories.segment_names import segment_names
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, is_checked, scanned_log
from lithify.ports.engine import Progress
from lithify.reports.rounds.cleaned_logs import CleanedLog, CleanReport

PHASE = "clean"
T = TypeVar("T")
R = TypeVar("R")


class CleanerTasks(Protocol):
    """What does the work of a round, such as Spark."""

    slots: int
    """Tasks that run at once."""

    def run(self, function: Callable[[T], R], tasks: Sequence[T], *, once: bool = False) -> list[R]:
        """What the function returns for each, in this order; it may be called `once` for a task.

        Raises the first error of one of them.
        """
        ...

    def dead(self, files: Sequence[KeysOfFile]) -> Mapping[int, DeadPositions]:
        """The key pass: by number of the segment, the offsets in it of records that lose.

        Raises `DamagedError` or `EngineError`.
        """
        ...


@dataclass(frozen=True, slots=True)
class CleanRequest:
    """What to clean, and how."""

    path: Path
    topics: Collection[str]
    settings: CleanSettings
    now_ms: int
    dry_run: bool = False
    after_crash: bool = False


@dataclass(frozen=True, slots=True)
class DirectoryCleaner:
    """`progress` gets groups of segments, `files` opens the folder of a log."""

    tasks: CleanerTasks
    request: CleanRequest
    progress: Progress = lambda _phase, _done, _total: None
    files: Callable[[Path], Files] = FolderFiles

    def clean(self) -> CleanReport:
        """A log that fails has its error in the report. Raises `RefusedError` or `InvalidInputError` if none can begin.
        """
        with described(self.request.path):
            return self._clean()

    def _clean(self) -> CleanReport:
        request = self.request
        _check_owner(request.path)
        with held(request.path) as is_held:
            if not is_held:
                raise RefusedError(f"{request.path} is in use by a broker", hint="stop the broker first")
            directory = log_directory(request.path)
            folders = _chosen(request, directory.folders)
            if not directory.was_shut_down and not request.after_crash:
                raise RefusedError(
                    f"{request.path}: its broker was not stopped in order, and will check the ends of its logs",
                    hint="start the broker and stop it in order, or clean what it will not check with --after-crash",
                )
            logs = [self._cleaned(folder, was_shut_down=directory.was_shut_down) for folder in folders]
        return CleanReport(str(request.path), tuple(logs), request.dry_run)

    def _cleaned(self, folder: LogFolder, *, was_shut_down: bool) -> CleanedLog:
        log = _LogRound(self, folder)
        try:
            log.run(was_shut_down=was_shut_down)
        except Exception as error:
            failed = as_lithify_error(error, f"{folder.topic}-{folder.partition}")
            return replace(log.report, error=str(failed), error_code=failed.code)
        return log.report


class _LogRound:
    """The round of one log."""

    def __init__(self, cleaner: DirectoryCleaner, folder: LogFolder) -> None:
        self.report = CleanedLog(folder.topic, folder.partition)
        self._folder, self._request, self._tasks = folder, cleaner.request, cleaner.tasks
        self._files, self._progress = cleaner.files(folder.path), cleaner.progress

    def run(self, *, was_shut_down: bool) -> None:
        request, files = self._request, self._files
        if has_leftovers(files.names()):
            if request.dry_run:
                raise RefusedError(
                    f"{files.path}: a cleaner was ended in it before it was done",
                    hint="run it without a dry run, which first completes that as a broker does that starts",
                )
            with reading(files.path):
                recover(files)
        log, facts = self._scanned(was_shut_down=was_shut_down)
        plan = clean_plan(log, facts, request.settings, request.now_ms)
        self.report = replace(self.report, first_dirty=plan.first_dirty, end=plan.end, limited_by=plan.limited_by)
        if not plan.groups:
            return
        dead = self._dead(plan, log)
        last = active_producers((one.producers for one in facts), request.now_ms)
        groups = [self._group(group, plan, log, dead, last) for group in plan.groups]
        self.report = replace(self.report, segments_in=len(plan.segments))
        for some in _waves(plan, groups, self._tasks.slots, files.path):
            for cleaned, group in zip(self._copied(some), some, strict=True):
                if not request.dry_run:
                    bases = [source.base_offset for source in group.sources]
                    swap_in(files, cleaned.base_offset, cleaned.suffixes, bases)
                self._add(cleaned)
                self._progress(PHASE, self.report.segments_out, len(groups))
        if not request.dry_run:
            _note_cleaned(request.path, self._folder, plan.end)

    def _scanned(self, *, was_shut_down: bool) -> tuple[ScannedLog, list[SegmentFacts]]:
        """Raises `DamagedError` for a log that a broker would cut, or not clean."""
        folder = self._folder
        segments = segment_names(path.name for path in folder.path.iterdir()).segments
        if not segments:
            raise InvalidInputError(f"{folder.path}: it has no segments", hint="name what log.dirs names")
        cuts = is_checked([*segments], folder.recovery_point, was_shut_down=was_shut_down)
        files = [SegmentToRead(folder.path / name, cut) for name, cut in zip(segments.values(), cuts, strict=True)]
        facts = self._tasks.run(facts_of_file, files)
        scanned = [
            ScannedSegment(file.path, fact.base_offset, fact.scan, file.cuts)
            for file, fact in zip(files, facts, strict=True)
        ]
        log = scanned_log(folder, scanned)
        damage = [*log.damage, *([log.cut] if log.cut is not None and len(log.segments) < len(scanned) else [])]
        if damage:
            raise DamagedError(
                f"{damage[0]}", hint="a cleaner needs whole logs: start the broker, which cuts or fetches it again"
            )
        if old := [fact.path for fact in facts[:-1] if fact.has_old_messages]:
            raise RefusedError(
                f"{old[0]}: it has messages of the time before Kafka 0.11",
                hint="let the broker clean it, or copy it into the lake with `lithify kafka import`",
            )
        if len(facts) > MOST_SEGMENTS:
            raise RefusedError(f"{folder.path}: it has {len(facts)} segments; at most {MOST_SEGMENTS} can be cleaned")
        return log, facts

    def _dead(self, plan: CleanPlan, log: ScannedLog) -> Mapping[int, DeadPositions]:
        """By base offset, the records of each segment that lose."""
        files = [
            KeysOfFile(segment.path, self._keys(number, segment, log), segment.base_offset >= plan.first_dirty)
            for number, segment in enumerate(plan.segments)
        ]
        dead = self._tasks.dead(files)
        return {file.keys.base_offset: dead[number] for number, file in enumerate(files)}

    def _keys(self, number: int, segment: SegmentFacts, log: ScannedLog) -> SegmentKeys:
        start, scan = segment.base_offset, segment.scan
        aborted = log.transactions.aborted_in(start, scan.end_offset or start)
        return SegmentKeys(number, start, scan.whole_bytes, aborted, self._request.now_ms)

    def _group(
        self,
        group: Sequence[SegmentFacts],
        plan: CleanPlan,
        log: ScannedLog,
        dead: Mapping[int, DeadPositions],
        last: LastBatches,
    ) -> SegmentGroup:
        settings, start, end = self._request.settings, group[0].base_offset, group[-1].scan.end_offset or plan.end
        near = {
            producer_id: batch
            for producer_id, batch in last.items()
            if batch.data_offset is None or start <= batch.data_offset < end
        }
        aborted = log.transactions.aborted_in(start, end)
        rules = CleanRules(self._request.now_ms, settings.delete_retention_ms, plan.end, near, aborted)
        sources = (GroupSource(s.path, s.base_offset, s.scan.whole_bytes, dead[s.base_offset]) for s in group)
        return SegmentGroup(
            tuple(sources),
            rules,
            plan.open_before[start],
            settings.index_interval_bytes,
            group[-1].modified_ns,
            writes=not self._request.dry_run,
        )

    def _copied(self, groups: Sequence[SegmentGroup]) -> list[CleanedGroup]:
        try:
            return self._tasks.run(copied_group, groups, once=not self._request.dry_run)
        except Exception:
            if not self._request.dry_run:
                recover(self._files)
            raise

    def _add(self, group: CleanedGroup) -> None:
        report = self.report
        self.report = replace(
            report,
            segments_out=report.segments_out + 1,
            records_in=report.records_in + group.records_in,
            records_out=report.records_out + group.records_out,
            bytes_in=report.bytes_in + group.bytes_in,
            bytes_out=report.bytes_out + group.bytes_out,
            changed=not self._request.dry_run,
        )


@dataclass(frozen=True, slots=True)
class SegmentToRead:
    """`cuts`: a broker that starts would cut it at its first damaged batch."""

    path: Path
    cuts: bool


def facts_of_file(file: SegmentToRead) -> SegmentFacts:
    """A task. Raises `InvalidInputError`."""
    with reading(file.path):
        return facts_of(file.path, cuts=file.cuts)


def copied_group(group: SegmentGroup) -> CleanedGroup:
    """A task. Raises `DamagedError`, `InvalidInputError` or `InsufficientSpaceError`."""
    folder = group.sources[0].path.parent
    with reading(folder), _writing(folder):
        return cleaned_group(group)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InsufficientSpaceError(
            f"{folder}: no space is left for a cleaned segment",
            hint="free space for one segment on that disk; logs are complete, and the next run goes on",
        ) from error


def _waves(
    plan: CleanPlan, groups: Sequence[SegmentGroup], slots: int, folder: Path
) -> Iterator[Sequence[SegmentGroup]]:
    """Groups in order, as many at once as there are slots, and space for what they are made of, but at least one."""
    left = list(zip(groups, (sum(s.size for s in group) for group in plan.groups), strict=True))
    while left:
        free = shutil.disk_usage(folder).free
        some = [left.pop(0)]
        while left and len(some) < slots and sum(size for _, size in some) + left[0][1] <= free:
            some.append(left.pop(0))
        yield [group for group, _ in some]


def _note_cleaned(root: Path, folder: LogFolder, end: int) -> None:
    path = root / CLEANER
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    with replacing(path) as file:
        file.write(with_offset(text, folder.topic, folder.partition, end).encode())


def _check_owner(path: Path) -> None:
    owner = path.stat().st_uid
    if os.geteuid() != owner:
        raise RefusedError(
            f"{path} is of the user {owner}, and this program runs as {os.geteuid()}",
            hint="run it as the user of the broker, which has to own the files that are written",
        )


def _chosen(request: CleanRequest, folders: Sequence[LogFolder]) -> list[LogFolder]:
    """Raises `RefusedError` or `InvalidInputError`."""
    if any(folder.path.resolve() == request.path.resolve() for folder in folders):
        raise InvalidInputError(
            f"{request.path}: it is the folder of one partition", hint="name the directory around it, and the topic"
        )
    for topic in request.topics:
        own = [folder for folder in folders if folder.topic == topic]
        if not own:
            raise InvalidInputError(f"{request.path} has no log of a topic {topic}", hint="name what log.dirs names")
        if own[0].is_internal:
            raise RefusedError(f"{topic} is a topic of Kafka itself, whose brokers have rules of their own for it")
    return sorted(
        (folder for folder in folders if folder.topic in request.topics), key=lambda one: (one.topic, one.partition)
    )
