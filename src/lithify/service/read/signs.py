"""The signs of the records of a copy, to be compared with those that its source has at the same offsets (C72)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lithify.errors import DamagedError
from lithify.model.sources.source import Signs, signs_of
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.read.fetch import open_logs


def copied_signs(
    warehouse: Warehouse, state: TopicState, ranges: Mapping[int, tuple[int, int]]
) -> Mapping[int, Mapping[int, Signs]]:
    """The signs of a version's records by partition and offset, without records behind a damaged file."""
    signs: dict[int, dict[int, Signs]] = {partition: {} for partition in ranges}
    with suppress(DamagedError):
        readers = open_logs(warehouse, state, {partition: start for partition, (start, _) in ranges.items()})
        for (partition, (_, end)), reader in zip(ranges.items(), readers, strict=True):
            for record in reader:
                assert record.offset is not None and record.timestamp is not None
                if record.offset >= end:
                    break
                signs[partition][record.offset] = signs_of(record.timestamp, record.key, record.value)
    return signs
