"""Batches as the tasks of a query write them: files at the log ends that a task knew, and one commit."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.staged import StagedLog
from lithify.model.topic.log import WrittenBatch
from lithify.model.topic.state import TopicState
from lithify.ports.files import SegmentFiles
from lithify.ports.store import Warehouse
from lithify.service.write.append_staged import StagedBatch, append_staged


def append_batch(
    warehouse: Warehouse, name: TopicName, tasks: Sequence[Sequence[Record]], batch: WrittenBatch, files: SegmentFiles
) -> TopicState:
    """Each task writes its records with `files`, then all of them are one batch."""
    state = warehouse.store.load(name)

    def written(records: Sequence[Record], run_id: str) -> list[StagedLog]:
        now_ms = warehouse.clock.now_ms()
        arrived = files.receive(state, records, now_ms=now_ms, keep_offsets=False)
        ends = {p: state.log(p).log_end_offset for p in arrived}
        return [
            StagedLog(
                name, state.identity, p, files.write(state, a, ends[p], run_id), a.last_timestamp_ms, a.message_ids
            )
            for p, a in arrived.items()
        ]

    def renumber(state: TopicState, segments: Sequence[Segment], base: int, run_id: str) -> tuple[Segment, ...]:
        stored = (r for s in segments for batch in files.read(s, 0) for r in batch.records())
        again = [record._replace(offset=base + number) for number, record in enumerate(stored)]
        arrived = files.receive(state, again, now_ms=0, keep_offsets=True)
        return tuple(files.write(state, arrived[segments[0].partition], base, run_id))

    logs = [log for records in tasks for log in written(records, warehouse.clock.new_id())]
    return append_staged(warehouse, renumber, StagedBatch(name, tuple(logs), batch))
