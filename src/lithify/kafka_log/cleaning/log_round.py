"""A round over the files of one log.

scans ─► plan ─► key pass ─► groups copied, some at once ─► swapped in, in order
                             ╰────── until no group is left ──────────────────╯
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from lithify.columnar.segment.dead_records import DeadPositions
from lithify.errors import DamagedError, InvalidInputError, RefusedError
from lithify.kafka_log.cleaning.batch_cleaner import CleanRules
from lithify.kafka_log.cleaning.clean_plan import LARGEST_DELTA, REPLICATED, CleanPlan, SegmentFacts, clean_plan
from lithify.kafka_log.cleaning.clean_settings import CleanSettings
from lithify.kafka_log.cleaning.group_cleaner import CleanedGroup, GroupSource, SegmentGroup, cleaned_group, writing
from lithify.kafka_log.cleaning.producers import LastBatches, active_producers
from lithify.kafka_log.cleaning.segment_facts import facts_of
from lithify.kafka_log.cleaning.segment_keys import MOST_SEGMENTS, KeysOfFile, SegmentKeys
from lithify.kafka_log.cleaning.swapping import Files, has_leftovers, recover, swap_in
from lithify.kafka_log.directories.checkpoints import REPLICATED as REPLICATED_TO
from lithify.kafka_log.directories.described import NEEDS_WHOLE, reading, too_many_facts
from lithify.kafka_log.directories.folders import LogFolder
from lithify.kafka_log.directories.segment_names import offsets_of, segment_names
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, is_checked, scanned_log
from lithify.kafka_log.segment_scan import MOST_FACTS
from lithify.ports.engine import Progress
from lithify.reports.rounds.cleaned_logs import CleanedLog

PHASE = "clean"
T = TypeVar("T")
R = TypeVar("R")


class CleanerTasks(Protocol):
    """What does the work of a round, such as Spark."""

    @property
    def slots(self) -> int:
        """Tasks that run at once."""
        ...

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
    """What to clean, and how. `config` is what was given; `now_ms` is read at the start of each log's round."""

    path: Path
    topics: Collection[str]
    config: Mapping[str, str]
    now_ms: Callable[[], int]
    dry_run: bool = False
    after_crash: bool = False


@dataclass(frozen=True, slots=True)
class LogToClean:
    """One log, and the settings of its topic."""

    folder: LogFolder
    files: Files
    settings: CleanSettings


class LogRound:
    """The round of one log; `report` is what it has done so far. `progress` gets groups of segments."""

    def __init__(self, tasks: CleanerTasks, request: CleanRequest, progress: Progress, log: LogToClean) -> None:
        self._folder, self._files, self._settings = log.folder, log.files, log.settings
        self.report = CleanedLog(self._folder.topic, self._folder.partition)
        self._request, self._tasks, self._progress = request, tasks, progress
        self._now_ms = request.now_ms()

    def run(self, *, was_shut_down: bool) -> None:
        """Raises `LithifyError` or `OSError`."""
        request, files = self._request, self._files
        _check_links(self._folder.path)
        if has_leftovers(files.names()):
            if request.dry_run:
                raise RefusedError(
                    f"{files.path}: a cleaner was ended in it before it was done",
                    hint="run it without a dry run, which first completes that as a broker does that starts",
                )
            with reading(files.path), writing(files.path):
                recover(files)
        log, facts = self._scanned(was_shut_down=was_shut_down)
        plan = clean_plan(log, facts, self._settings, self._now_ms)
        self.report = replace(self.report, first_dirty=plan.first_dirty, end=plan.end, limited_by=plan.limited_by)
        if plan.limited_by == REPLICATED and self._folder.replicated_to is None:
            raise RefusedError(
                f"{files.path}: no entry in {self._folder.path.parent / REPLICATED_TO} says which of its records "
                "all replicas have",
                hint="start the broker and stop it in order, or copy that file of its directory too",
            )
        if not plan.groups:
            return
        dead = self._dead(plan, log)
        expired_ms = self._now_ms - self._settings.producer_id_expiration_ms
        last = active_producers((one.producers for one in facts), expired_ms)
        groups = [self._group(group, plan, log, dead, last) for group in plan.groups]
        self.report = replace(self.report, segments_in=len(plan.segments))
        for some in _waves(plan, groups, self._tasks.slots, files.path):
            for cleaned, group in zip(self._copied(some), some, strict=True):
                if not request.dry_run:
                    self.report = replace(self.report, changed=True)
                    bases = [source.base_offset for source in group.sources]
                    with writing(files.path):
                        swap_in(files, cleaned.base_offset, cleaned.suffixes, bases)
                self._add(cleaned)
                self._progress(PHASE, self.report.segments_out, len(groups))

    def _scanned(self, *, was_shut_down: bool) -> tuple[ScannedLog, list[SegmentFacts]]:
        """Raises `DamagedError` for a log that a broker would cut, or not clean."""
        folder = self._folder
        segments = segment_names(path.name for path in folder.path.iterdir()).segments
        if not segments:
            raise InvalidInputError(f"{folder.path}: it has no segments", hint="name what log.dirs names")
        cuts = is_checked([*segments], folder.recovery_point, was_shut_down=was_shut_down)
        told = zip(segments.values(), offsets_of([*segments]), cuts, strict=True)
        files = [SegmentToRead(folder.path / name, offsets, cut) for name, offsets, cut in told]
        facts = self._tasks.run(facts_of_file, files)
        _check_same(facts)
        if sum(fact.scan.facts for fact in facts) > MOST_FACTS:
            raise too_many_facts(f"{folder.path} has")
        scanned = [
            ScannedSegment(file.path, fact.base_offset, fact.scan, file.cuts)
            for file, fact in zip(files, facts, strict=True)
        ]
        log = scanned_log(folder, scanned)
        loses = log.cut is not None and (was_shut_down or len(log.segments) < len(scanned))
        if damage := [*log.damage, *([log.cut] if loses else [])]:
            raise DamagedError(f"{damage[0]}", hint=NEEDS_WHOLE)
        if old := [fact.path for fact in facts[:-1] if fact.is_of_old_versions]:
            raise RefusedError(
                f"{old[0]}: it has messages of the time before Kafka 0.11",
                hint="let the broker clean it, or import the directory into the lake",
            )
        if wide := [fact.path for fact in facts if fact.last_delta > LARGEST_DELTA]:
            raise RefusedError(
                f"{wide[0]}: its offsets are further apart than the {LARGEST_DELTA} that a segment can have",
                hint="start the broker, which splits it into several, and stop it in order",
            )
        if len(facts) > MOST_SEGMENTS:
            raise RefusedError(f"{folder.path}: it has {len(facts)} segments; at most {MOST_SEGMENTS} can be cleaned")
        return log, facts

    def _dead(self, plan: CleanPlan, log: ScannedLog) -> Mapping[int, DeadPositions]:
        """By base offset, the records of each segment that lose."""
        files = [
            KeysOfFile(
                segment.path,
                self._keys(number, segment, log),
                is_dirty=segment.base_offset >= plan.first_dirty,
                needs_keys=not self._settings.is_stated,
            )
            for number, segment in enumerate(plan.segments)
        ]
        dead = self._tasks.dead(files)
        return {file.keys.base_offset: dead[number] for number, file in enumerate(files)}

    def _keys(self, number: int, segment: SegmentFacts, log: ScannedLog) -> SegmentKeys:
        start, scan = segment.base_offset, segment.scan
        aborted = log.transactions.aborted_in(start, scan.end_offset or start)
        return SegmentKeys(number, start, scan.whole, aborted, self._now_ms)

    def _group(
        self,
        group: Sequence[SegmentFacts],
        plan: CleanPlan,
        log: ScannedLog,
        dead: Mapping[int, DeadPositions],
        last: LastBatches,
    ) -> SegmentGroup:
        settings, start, end = self._settings, group[0].base_offset, group[-1].scan.end_offset or plan.end
        near = {
            producer_id: batch
            for producer_id, batch in last.items()
            if batch.data_offset is None or start <= batch.data_offset < end
        }
        aborted = log.transactions.aborted_in(start, end)
        rules = CleanRules(self._now_ms, settings.delete_retention_ms, plan.end, near, aborted)
        sources = (GroupSource(s.path, s.base_offset, s.scan.whole, dead[s.base_offset]) for s in group)
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
                with suppress(OSError):  # of the same disk; the next run completes it
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
        )


def _check_same(facts: Sequence[SegmentFacts]) -> None:
    """A task on another machine would read, and write beside, the files of a broker there."""
    for fact in facts:
        status = fact.path.stat()
        if (status.st_size, status.st_mtime_ns) != (fact.size, fact.modified_ns):
            raise RefusedError(
                f"{fact.path}: a task has read another file of this name",
                hint="run the tasks on this machine, as with spark.master=local[*]",
            )


@dataclass(frozen=True, slots=True)
class SegmentToRead:
    """`cuts`: a broker that starts would cut it at its first damaged batch."""

    path: Path
    offsets: range
    cuts: bool


def facts_of_file(file: SegmentToRead) -> SegmentFacts:
    """A task. Raises `InvalidInputError`."""
    with reading(file.path):
        return facts_of(file.path, file.offsets, cuts=file.cuts)


def copied_group(group: SegmentGroup) -> CleanedGroup:
    """A task. Raises `DamagedError` or what `writing` raises."""
    folder = group.sources[0].path.parent
    with reading(folder), writing(folder):
        return cleaned_group(group)


def _check_links(folder: Path) -> None:
    """What a link leads to may be in other hands, whose lock this is not."""
    for path in (folder, *sorted(folder.iterdir())):
        if path.is_symlink():
            raise RefusedError(
                f"{path} is a link, which is left as it is",
                hint="name the directory that it leads to, if log.dirs names that",
            )


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
