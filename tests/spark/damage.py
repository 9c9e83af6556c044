"""Segments that are exchanged for others, as a defect of ours would do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lithify.api.topic import Topic
from lithify.model.log_arithmetic import view_of
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LastRecord

Change = Callable[[pa.Table], pa.Table]


def replaced(topic: Topic, segment: Segment, change: Change, *, in_view: bool = False) -> None:
    """Commits another file in the place of a segment of the first log, or of its view."""
    warehouse, state = topic.warehouse, topic.state()
    (batch,) = warehouse.files.read(segment, 0)
    table = change(batch.to_arrow()).drop_columns(["value_size"])
    arrivals = warehouse.files.receive(state, table, now_ms=0, keep_offsets=True)[0]
    written = warehouse.files.write(state, arrivals, segment.base_offset, "damage")
    files = {"view_add": written, "view_remove": (segment,)} if in_view else {"add": written, "remove": (segment,)}
    log = state.log(0)
    if in_view:  # or the store itself would refuse to read the view
        assert log.view is not None
        last = LastRecord(written[-1].end_offset - 1, 0)
        log = replace(log, view=view_of(written, last, log.view.start_offset, losers_removed=True))
    warehouse.store.commit(state, TopicEdit(run_id="damage", time_ms=0, logs={0: log}, **files))


def without(*offsets: int) -> Change:
    return lambda table: table.filter(~pc.field("offset").isin(offsets))


def with_value(offset: int, value: bytes) -> Change:
    def change(table: pa.Table) -> pa.Table:
        values = pc.if_else(pc.equal(table["offset"], offset), pa.scalar(value, pa.binary()), table["value"])
        return table.set_column(table.column_names.index("value"), table.schema.field("value"), values)

    return change
