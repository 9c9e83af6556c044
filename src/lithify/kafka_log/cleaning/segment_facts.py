"""A segment read once for the plan of a round."""

from __future__ import annotations

from pathlib import Path

from lithify.kafka_log.batches.header import BatchHeader
from lithify.kafka_log.cleaning.clean_plan import SegmentFacts
from lithify.kafka_log.cleaning.producers import note_batch
from lithify.kafka_log.cleaning.swapping import INDEX, TIME_INDEX
from lithify.kafka_log.directories.files import opened
from lithify.kafka_log.segment_scan import SegmentScan, scanned


def facts_of(path: Path, offsets: range, *, cuts: bool) -> SegmentFacts:
    """Of a segment that has no other `offsets`. Raises `OSError`; what is damaged is in its scan."""
    status = path.stat()
    sizes = (status.st_size, _size(path.with_suffix(INDEX)), _size(path.with_suffix(TIME_INDEX)))
    facts = SegmentFacts(path, int(path.stem), SegmentScan(), sizes, status.st_mtime_ns)

    def note(header: BatchHeader | None) -> None:
        if header is None:
            facts.is_of_old_versions = True
            return
        facts.newest_ms = max(facts.newest_ms, header.max_timestamp)
        note_batch(facts.producers, header)

    with opened(path) as file:
        facts.scan = scanned(file, cuts=cuts, offsets=offsets, told=note)
    return facts


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
