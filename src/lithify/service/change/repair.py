"""Recreates a topic whose catalog entry or metadata is lost, from the files in its folder.

    remains ─► plan (`rules/lifecycle/repairing.py`) ─► shown ─► with `repair`: register, or rebuild

It works where `commit` cannot, since there is no version to commit on. It is atomic nevertheless: afterwards
the catalog has the topic as it was, or as it was planned, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.names import TopicName
from lithify.model.remains import Remains
from lithify.model.segment import Segment, volume_of
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.repair import Salvage
from lithify.ports.store import Warehouse
from lithify.reports.warehouse import RepairedLog, RepairReport
from lithify.rules.lifecycle.copies.ids import with_copied
from lithify.rules.lifecycle.repairing import RepairPlan, Way, clusters, plan_repair
from lithify.service.last_record import last_record


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """`folder` and `metadata` choose one of several; without `repair` the repair is only planned."""

    name: TopicName
    repair: bool = False
    folder: str | None = None
    metadata: str | None = None


def repair(warehouse: Warehouse, salvage: Salvage, request: RepairRequest) -> RepairReport:
    """Plans the repair of a topic, and does it if asked to.

    Raises `UnknownTopicError`, `RefusedError` if it cannot be decided, `ConflictError` if others committed first,
    `DamagedError` or `WarehouseError`.
    """
    remains = salvage.remains(request.name, request.folder, request.metadata)
    plan = plan_repair(remains)
    if not request.repair or plan.way is Way.NOTHING:
        return _report(request, remains, plan)
    match plan.way:
        case Way.REGISTER:
            assert plan.metadata is not None
            salvage.register(request.name, plan.metadata.path, remains.current)
        case Way.FINISH:
            salvage.finish_deletion(remains.location)
        case Way.REBUILD:
            _rebuild(warehouse, salvage, request.name, remains, plan)
    return _report(request, remains, plan)


def _rebuild(warehouse: Warehouse, salvage: Salvage, name: TopicName, remains: Remains, plan: RepairPlan) -> None:
    known = None if plan.metadata is None else plan.metadata.state
    state = TopicState(
        name=name,
        original_name=str(name) if known is None else known.original_name,
        identity="",
        version=0,
        location=remains.location,
        settings=plan.settings,
        own_settings=plan.own_settings,
        logs=(),
        created_ms=warehouse.clock.now_ms() if known is None else known.created_ms,
        origin=plan.origin,
    )
    run_id = warehouse.clock.new_id()
    logs: list[LogState] = []
    segments: list[Segment] = []
    for log in plan.logs:
        mine: list[Segment] = []
        for together in clusters(log.segments):
            mine += together if len(together) == 1 else salvage.unite(state, together, run_id)
        last = last_record(warehouse, tuple(mine), None)
        rebuilt = replace(log.state, dirty=volume_of(tuple(mine)), last_record=last)
        logs.append(with_copied(rebuilt, last).with_run(run_id))
        segments += mine
    salvage.rebuild(replace(state, logs=tuple(logs)), segments, remains.identities, remains.current)


def _report(request: RepairRequest, remains: Remains, plan: RepairPlan) -> RepairReport:
    file = plan.metadata
    known = () if file is None or file.state is None else file.state.logs
    logs = tuple(log.state for log in plan.logs) or known
    return RepairReport(
        topic=str(request.name),
        trouble=remains.entry_problem,
        way=plan.way.value,
        repaired=request.repair and plan.way is not Way.NOTHING,
        complete=plan.complete,
        location=remains.location,
        metadata=None if file is None else file.path,
        version=None if file is None or file.state is None else file.state.version,
        logs=tuple(
            RepairedLog(log.partition, log.log_start_offset, log.log_end_offset, log.volume.records) for log in logs
        ),
        notes=plan.notes,
    )
