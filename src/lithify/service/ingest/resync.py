"""Deletes the keys of a copy that its source no longer has (C71): which of its files are read for that, and when.

copy's keys, as its table is read ─► source: a batch with deletes ─► commit ─► nothing was missed any more
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lithify.model.segment import by_partition
from lithify.model.settings.units import plural
from lithify.model.sources.origin import CopyOf
from lithify.model.sources.source import SourcePosition
from lithify.model.staged import StagedLog
from lithify.model.topic.state import TopicState
from lithify.ports.source import Copying, CopyKeys, DropsDeletes, SourceBatch
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestNote, TellNote
from lithify.rules.compaction.survivor_rules import table_rules
from lithify.rules.lifecycle.copies.missed_deletes import check_resync
from lithify.rules.reading.pieces import Reading, pieces_of
from lithify.service.ingest.source_watch import SourceWatch


def resync(drops: DropsDeletes, watch: SourceWatch, take: Callable[[SourceBatch], None], notes: TellNote) -> int:
    """Copies up to where the source ends now, with deletes; returns how many keys were deleted.

    Raises as `take`, which commits the batch, and `PolicyError` where there is no room for the deletes, or where the
    source may have lost keys that nobody deleted.
    """
    keys, theirs = copy_keys(watch.warehouse, watch.state), str(CopyOf(watch.source.system, watch.topic.name))

    def check() -> None:
        check_resync(watch.state.name, theirs, drops.stable_ends(watch.topic), keys.oldest)

    check()
    batch = drops.resync(watch.topic, dict(watch.read_to), watch.ends, keys)
    take(_CheckedBatch(batch, check))
    watch.resynced()
    deleted, name = sum(batch.deleted.values()), str(watch.state.name)
    text = f"{watch.topic.name} → {name}: {plural(deleted, 'key')} deleted that {watch.source.system} no longer has"
    notes(IngestNote("resynced", text, watch.topic.name, name))
    return deleted


@dataclass(frozen=True, slots=True)
class _CheckedBatch:
    """A batch that is checked once it was copied: what the source loses meanwhile is missing in what was read."""

    batch: SourceBatch
    check: Callable[[], None]

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        staged = self.batch.copy(copying)
        self.check()
        return staged

    def ends(self) -> Mapping[int, SourcePosition]:
        return self.batch.ends()

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return self.batch.damaged()


def copy_keys(warehouse: Warehouse, state: TopicState) -> CopyKeys:
    """The signs of this version. Raises `DamagedError` or `WarehouseError`."""
    segments = by_partition(warehouse.store.segments(state))
    view = by_partition(warehouse.store.view(state) if state.settings.side_by_side else ())
    how = Reading(compacted=True)
    pieces = {
        log.partition: pieces_of(log, segments.get(log.partition, ()), view.get(log.partition, ()), how)
        for log in state.logs
    }
    return CopyKeys(pieces, {log.partition: table_rules(log, state.settings) for log in state.logs})
