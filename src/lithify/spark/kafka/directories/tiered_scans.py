"""Logs of which tiered storage has segments, with what brokers have of them: scanned, and put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from lithify.kafka_log.directories.folders import LogFolder
from lithify.kafka_log.directories.segment_names import OFFSETS
from lithify.kafka_log.replicas import telling_replicas
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment
from lithify.kafka_log.tiered_log import TieredLog, tiered_log
from lithify.spark.kafka.directories.log_tasks import scans_of, segment_file


def with_tiered(
    session: SparkSession,
    folders: Sequence[LogFolder],
    brokers: Mapping[int, ScannedLog],
    stops: Callable[[], bool],
) -> Mapping[int, ScannedLog]:
    """By partition of `folders`. `brokers` are the best replicas that brokers have. Raises what `scans_of` raises."""
    if not folders:
        return {}
    files = [segment_file(path, offsets=range(base, OFFSETS)) for folder in folders for base, path in folder.tiered]
    scans = scans_of(session, files, stops)
    found: dict[int, list[ScannedSegment]] = {}
    for folder in folders:
        found.setdefault(folder.partition, []).extend(
            ScannedSegment(path, base, scans[path]) for base, path in folder.tiered
        )
    places = {folder.partition: folder for folder in folders}
    logs = {p: tiered_log(places[p], own, brokers.get(p)) for p, own in found.items()}
    for partition, log in logs.items():
        with telling_replicas(f"{places[partition].topic}-{partition}"):
            log.check_end()
    return {p: log.together() for p, log in _without_overlaps(session, logs, stops).items()}


def _without_overlaps(
    session: SparkSession, logs: Mapping[int, TieredLog], stops: Callable[[], bool]
) -> Mapping[int, TieredLog]:
    """With scans that end where the next segment begins, so that none of their transactions counts twice."""
    again = [segment_file(one.path, end=end) for log in logs.values() for one, end in log.overlapping]
    if not again:
        return logs
    scans = scans_of(session, again, stops)
    return {
        p: replace(log, segments=tuple(replace(one, scan=scans.get(one.path, one.scan)) for one in log.segments))
        for p, log in logs.items()
    }
