"""Kafka's log directories as the source of an ingest (`ports/source.py`): of a stopped broker, or copies of them.

    directories ─► folders of partitions ─► scans, of the topics that are copied ─► the best replica of each partition

Nothing in them says how a topic is set up: a copy gets Kafka's defaults, and what is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.errors import InvalidInputError, RefusedError, SourceWentBackError, UnknownSourceError
from lithify.kafka_log.directories.described import described, directory_at, reading
from lithify.kafka_log.directories.folders import LogFolder, is_in_use
from lithify.kafka_log.directories.segment_names import in_place, offsets_of, segment_names
from lithify.kafka_log.log_notes import NAMED_AT_MOST, deletes_text, notes_of, scanning_text
from lithify.kafka_log.replicas import best_of, left_behind, telling_replicas
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, is_checked, scanned_log
from lithify.kafka_log.whole_logs import lacking
from lithify.model.names import LogId
from lithify.model.sources.source import IngestRequest, SourceLog, SourcePosition, SourceTopic, signs_of
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.source import OnBatch, SourceStream, StopAsked
from lithify.reports.ingest import IngestedLog, IngestListener, IngestNote
from lithify.rules.lifecycle.copies.copy_continuation import (
    CopyContinuation,
    CopyContinues,
    SourceWasCut,
    SourceWentBack,
    epochs_to_ask,
)
from lithify.spark.kafka.batch_limit import BATCH_BYTES, BATCH_OFFSETS
from lithify.spark.kafka.compared import AllSigns, CopiedSigns, Ranges, compared
from lithify.spark.kafka.directories.log_stream import SegmentStream, batches_of
from lithify.spark.kafka.directories.log_tasks import SegmentCopy, SegmentFile, scans_of, segment_file
from lithify.spark.kafka.directories.tiered_scans import with_tiered
from lithify.spark.kafka.kafka_source import settings_like

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOLD = ("cleanup.policy", "retention.ms", "null.key")
"""Settings of a new copy that differ from Kafka's defaults."""


class LogDirectories:
    """What there is in some directories."""

    system = "Kafka"
    is_silent = False
    drops = None
    look_interval_ms = 300_000

    def __init__(
        self,
        session: Callable[[], SparkSession],
        paths: Sequence[Path],
        request: IngestRequest,
        listener: IngestListener,
        copied: CopiedSigns,
    ) -> None:
        """Spark starts with the first scan.

        Raises `RefusedError` for a directory that a broker has, and for two clusters, `InvalidInputError` for a path
        that is not a directory.
        """
        self._session, self._paths = cache(session), tuple(paths)
        self._request, self._copied = request, copied
        self._notes, self._stops = listener.notes, listener.stops
        self._places = {*self._paths}
        self._check_unused()
        directories = [directory_at(path) for path in self._paths]
        folders = [folder for directory in directories for folder in directory.folders]
        self._folders: dict[str, list[LogFolder]] = {}
        for folder in folders:
            self._folders.setdefault(folder.topic, []).append(folder)
        elsewhere = (one.path for one in folders if one.path in self._places or one.path.is_symlink())
        self._places |= {path.resolve().parent for path in elsewhere}
        self._check_unused()
        self._shut_down = {folder.path for one in directories if one.was_shut_down for folder in one.folders}
        self._logs: dict[str, dict[int, ScannedLog]] = {}
        self._cluster_id = _only_cluster(folders)
        if not self._folders:
            raise InvalidInputError(
                f"{self.where}: no folder of a partition, such as orders-0", hint="name what log.dirs names"
            )

    @property
    def where(self) -> str:
        return ", ".join(map(str, self._paths))

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Topics of Kafka itself are left out."""
        names = (name for name, folders in self._folders.items() if not folders[0].is_internal)
        return tuple(sorted(name for name in names if re.fullmatch(pattern, name)))

    def topic(self, name: str) -> SourceTopic:
        """Raises `UnknownSourceError`, or `RefusedError` where directories have two topics of that name."""
        folders = self._folders.get(name)
        if not folders:
            there = ", ".join(self.topics(".*")[:NAMED_AT_MOST])
            raise UnknownSourceError(
                f"{self.where} has no log of a topic {name}", hint=f"check the name: there is {there}" if there else ""
            )
        ids = sorted({folder.topic_id for folder in folders if folder.topic_id})
        if len(ids) > 1:
            raise RefusedError(
                f"the directories have logs of {len(ids)} topics called {name}, with the ids {', '.join(ids)}",
                hint="import the directories of one cluster; leave out folders of a topic that was deleted",
            )
        partitions = tuple(sorted({folder.partition for folder in folders}))
        is_whole = False  # brokers have some of them
        return SourceTopic(name, ids[0] if ids else "", partitions, self._cluster_id, is_whole)

    def logs(self, topic: str) -> Mapping[int, ScannedLog]:
        """By partition, its best replica. Scans at the first call. Raises what `scans_of` raises."""
        if topic not in self._logs:
            self._logs[topic] = self._best(topic)
        return self._logs[topic]

    def epochs(self, topic: SourceTopic) -> Mapping[int, int | None]:
        return {p: log.leader_epoch for p, log in self.logs(topic.name).items()}

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        """By offsets, epochs and last records, as of a cluster. Raises `SourceWentBackError` for files that end before
        the copy.
        """
        logs = self._source_logs(topic.name)
        asked = epochs_to_ask(copy, logs)
        ends = {p: self.logs(topic.name)[p].end_of_epoch(at.epoch) for p, at in asked.items()}
        cuts = {
            p: SourceWasCut(asked[p].offset, end) for p, end in ends.items() if end is None or end < asked[p].offset
        }
        found = compared(copy, logs, cuts, lambda ranges: self._signs(topic.name, ranges), self._copied)
        for partition, how in found.items():
            if isinstance(how, SourceWentBack):
                raise SourceWentBackError(
                    f"{LogId(copy.name, partition)}: the files of {topic.name}-{partition} end at {how.source_end}, "
                    f"below the {how.log_end} of the copy",
                    hint="they are older than the copy, or of another topic of that name: give the files of another "
                    "replica, or import into another topic, with --into",
                )
            if isinstance(how, CopyContinues):
                self._check_continues(topic.name, LogId(copy.name, partition), copy.log(partition))
        return found

    def _check_continues(self, topic: str, name: LogId, copied: LogState) -> None:
        log, end, epoch = self.logs(topic)[name.partition], copied.log_end_offset, copied.source_epoch
        if not 0 < end < log.stable_end:
            return
        if epoch is not None and log.reached_epoch is not None and log.reached_epoch < epoch:
            raise SourceWentBackError(
                f"{name}: the copy was read in leader epoch {epoch}, and the latest one of {log.folder.path} is "
                f"{log.reached_epoch}: what follows the copy's end may be what the cluster has left out",
                hint="give the files of another replica, or import into another topic, with --into",
            )
        if (text := deletes_text(str(name), log, end)) is not None:
            self._notes(IngestNote("unknown_deletes", text, topic, str(name.topic)))

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        """Nothing: files that are in nobody's hands do not change. Raises `RefusedError` if a broker has them now."""
        self._check_unused()
        return {}

    def progress(self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]) -> tuple[IngestedLog, ...]:
        return tuple(
            IngestedLog(p, copy.log(p).log_end_offset, log.end_offset, records.get(p, 0))
            for p, log in self._source_logs(topic.name).items()
        )

    def settings(self, topic: str, config: Mapping[str, object]) -> Mapping[str, object]:
        """Raises what `stream` raises of a new copy, as nothing is created for that."""
        [*lacking(topic, self.logs(topic), self._starts(topic), skips=self._request.skip_damaged)]
        mine = settings_like({}, config)
        named = ", ".join(f"{name}={value}" for name, value in mine.items() if name in _TOLD or name in config)
        text = (
            f"{self._request.target(topic)}: created with {named}, as an import copies no settings; give the "
            "topic's own with --config: where cleanup.policy was delete, a round would remove records"
        )
        self._notes(IngestNote("settings", text, source=topic))
        return mine

    def own_config(self, _topic: str) -> Mapping[str, str] | None:
        return None

    def stream(
        self, topic: str, starts: Mapping[int, SourcePosition | None], run_id: str, on_batch: OnBatch
    ) -> SourceStream:
        """Raises `DamagedError` for what the files lack, if that is not to be passed over."""
        logs, offsets = self.logs(topic), {p: start for p, start in starts.items() if isinstance(start, int)}
        self._check_whole(topic, offsets)
        batches = batches_of(logs, offsets, BATCH_BYTES, self._request.max_records or BATCH_OFFSETS)
        stream = SegmentStream(self._session(), f"lithify import {topic} {run_id}", batches, on_batch)
        stream.start()
        return stream

    def _best(self, topic: str) -> dict[int, ScannedLog]:
        found: dict[int, list[ScannedLog]] = {}
        folders = self._folders[topic]
        for log in self._scanned(topic, [folder for folder in folders if not folder.tiered]):
            found.setdefault(log.folder.partition, []).append(log)
        best: dict[int, ScannedLog] = {}
        for partition, replicas in found.items():
            with telling_replicas(f"{topic}-{partition}"):
                best[partition] = best_of(replicas)
            for text in left_behind(best[partition], replicas):
                self._notes(IngestNote("other_replica", f"{topic}-{partition}: {text}", topic))
        best |= with_tiered(self._session(), [folder for folder in folders if folder.tiered], best, self._stops)
        logs = dict(sorted(best.items()))
        for event, text in notes_of(topic, logs):
            self._notes(IngestNote(event, text, topic))
        return logs

    def _scanned(self, topic: str, folders: Sequence[LogFolder]) -> Iterator[ScannedLog]:
        session, files = self._session(), {folder.path: self._files(folder) for folder in folders}
        every = [file for own in files.values() for _, file in own]
        text = scanning_text(topic, [file.size_bytes for file in every])
        self._notes(IngestNote("scanning", text, topic))
        scans = scans_of(session, every, self._stops)
        for folder in folders:
            segments = [ScannedSegment(f.path, base, scans[f.path], f.cuts) for base, f in files[folder.path]]
            yield scanned_log(folder, segments)

    def _files(self, folder: LogFolder) -> list[tuple[int, SegmentFile]]:
        with reading(folder.path):
            names = segment_names(path.name for path in folder.path.iterdir())
        swaps = [segment_file(folder.path / name, offsets=offsets_of([at])[0]) for at, name in names.swaps.items()]
        scans = scans_of(self._session(), swaps, self._stops) if swaps else {}
        ends = [scans[file.path].end_offset or 0 for file in swaps]
        placed = in_place(names, dict(zip(names.swaps, ends, strict=True)))
        checked = is_checked([*placed], folder.recovery_point, was_shut_down=folder.path in self._shut_down)
        told = (offsets_of([*placed]), placed.values(), checked)
        reads = self._request.skip_damaged  # else an error names the first that cannot be read
        return [
            (offsets.start, segment_file(folder.path / name, cuts=cuts, offsets=offsets, reads_records=reads))
            for offsets, name, cuts in zip(*told, strict=True)
        ]

    def _starts(self, topic: str) -> Mapping[int, int]:
        return {p: log.start_offset for p, log in self.logs(topic).items()}

    def _source_logs(self, topic: str) -> Mapping[int, SourceLog]:
        return {
            p: SourceLog(p, log.start_offset, log.stable_end, log.leader_epoch) for p, log in self.logs(topic).items()
        }

    def _signs(self, topic: str, ranges: Ranges) -> AllSigns:
        found: dict[int, dict[int, tuple[int, int]]] = {}
        for partition, (start, end) in ranges.items():
            if self._stops():
                raise StopAsked
            log = self.logs(topic)[partition]
            segments = (s for s in log.segments if s.base_offset < end and s.end_offset > start)
            copies = (
                SegmentCopy(partition, s.path, s.scan.whole, s.committed(start, end, log.transactions))
                for s in segments
            )
            found[partition] = {
                r["offset"]: signs_of(r["timestamp"], r["key"], r["value"])
                for copy in copies
                for table in copy.tables()
                for r in table.to_pylist()
            }
        return found

    def _check_whole(self, topic: str, starts: Mapping[int, int]) -> None:
        for text in lacking(topic, self.logs(topic), starts, skips=self._request.skip_damaged):
            self._notes(IngestNote("damaged", text, topic))

    def _check_unused(self) -> None:
        for place in sorted(self._places):
            with described(place):
                in_use = is_in_use(place)
            if in_use:
                raise RefusedError(f"{place} is in use by a broker", hint="stop the broker, or import a copy of it")


def _only_cluster(folders: Sequence[LogFolder]) -> str:
    """The id of the cluster that they are of; empty if no directory tells."""
    places = {folder.cluster: folder.path.parent for folder in folders if folder.cluster}
    if len(places) > 1:
        named = "; ".join(f"{place} of {cluster}" for cluster, place in sorted(places.items()))
        raise RefusedError(
            f"the directories are of {len(places)} clusters: {named}",
            hint="import the directories of one cluster at a time, each with --into",
        )
    return next(iter(places), "")
