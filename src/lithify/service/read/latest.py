"""The latest records of a log in one version, whose files may be swept while they are read (C7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lithify.errors import DamagedError
from lithify.model.names import LogId
from lithify.model.segment import Segment, sizes_of
from lithify.model.topic.state import TopicState
from lithify.ports.files import Batch
from lithify.ports.store import Warehouse
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.service.read.version_reader import was_swept

_HINT = "read the newest version, which needs other files"


def latest(
    warehouse: Warehouse,
    state: TopicState,
    partition: int,
    segments: Sequence[Segment],
    rules: SurvivorRules,
    key: bytes | None,
) -> Iterator[Batch]:
    """What `SegmentFiles.latest` gives of segments of `state`. Raises `DamagedError` or `VersionSweptError`."""
    try:
        yield from warehouse.files.latest(segments, rules, key)
    except DamagedError as error:
        named = warehouse.store.named_files(state.name)
        gone = warehouse.files.missing([path for path in sizes_of(segments) if path not in named])
        if not gone:
            raise
        raise was_swept(LogId(state.name, partition), state.version, gone[0], _HINT) from error
