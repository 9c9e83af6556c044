"""Deleting files that nothing names any more: the only place that does (C6).

list the folder ─► what the metadata names ─► what may go, and since when
                               ▲                     │ with `delete`
                               └── read once more ◄──┘─► delete what is still not named
"""

from __future__ import annotations

from lithify.compaction.sweeping import may_be_swept
from lithify.model.cut_report import SweepReport, SweptFile
from lithify.model.names import TopicName
from lithify.ports import Warehouse
from lithify.service.clock import check_clock


def sweep(warehouse: Warehouse, name: TopicName, *, delete: bool) -> SweepReport:
    """The files of a topic that may go; with `delete` they go. Raises `UnknownTopicError` or `WarehouseError`.

    A file is listed before the metadata is read, so that one that is committed meanwhile is seen named.
    """
    store, now_ms = warehouse.store, warehouse.clock.now_ms()
    state = store.load(name)
    stored = tuple(store.stored_files(state))
    closings = store.closings(state)
    named = store.named_files(name)
    may_go = tuple(
        SweptFile(file.path, file.size_bytes, file.modified_ms, closings.get(file.path))
        for file in stored
        if file.path not in named and may_be_swept(file.modified_ms, closings.get(file.path), state.settings, now_ms)
    )
    if delete and may_go:
        check_clock(state, now_ms)
        named = store.named_files(name)
        may_go = tuple(file for file in may_go if file.path not in named)
        store.delete_files(state, [file.path for file in may_go])
    return SweepReport(str(name), delete, may_go, now_ms)
