"""A round of one topic: `compact`, and its plan (C30)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lithify.errors import LithifyError, PolicyError
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.engine import Progress, RewriteEngine, RunLimits, silent, unsaid
from lithify.ports.store import Warehouse
from lithify.reports.rounds.plan import PlanReport
from lithify.reports.rounds.round import RoundReport
from lithify.rules.compaction.key_pass_shape import key_pass_shapes, worker_bytes
from lithify.rules.compaction.round_report import plan_report
from lithify.service.change.streams import as_inherited, inherit_now
from lithify.service.documents import may_have_masks
from lithify.service.group_reads import read_groups
from lithify.service.look.space import space_of
from lithify.service.round.run import Run, run_rounds
from lithify.service.round.topic_run import plan_rounds

if TYPE_CHECKING:
    from lithify.ports.profile import Profile


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request of a round. `now_ms` is the time for lags and expiry; None is the clock's."""

    partitions: Sequence[int] | None = None
    now_ms: int | None = None
    limits: RunLimits = RunLimits()
    notes: Callable[[str], None] = unsaid
    """Gets what a round says before it begins: how much free space it may need."""
    profile: Profile | None = None
    """Gets what its phases take; what its tasks take, it gets from the engine."""


def check_masks(warehouse: Warehouse, state: TopicState) -> None:
    """Raises `PolicyError` if rounds may not leave dead records in masks."""
    if state.round_settings.segment_max_dead_ratio == 0:
        reason, hint = "segment.max.dead.ratio=0 allows no masks", "omit --partial-progress, or change the setting"
    elif not may_have_masks(warehouse.store, state):
        reason, hint = "its warehouse has no masks", "let rounds write masks with `lithify warehouse upgrade`"
    else:
        return
    raise PolicyError(f"{state.name}: {reason}, but partial progress needs them", hint=hint)


def plan_compact(warehouse: Warehouse, slots: int, name: TopicName, request: RunRequest) -> PlanReport:
    """What `compact` would do now with `slots` tasks at once, with upper bounds of its cost.

    Raises what `load`, `plan_rounds` and, with `limits.rewrite_bytes`, `check_masks` do.
    """
    state = as_inherited(warehouse, warehouse.store.load(name))
    now_ms = warehouse.clock.now_ms() if request.now_ms is None else request.now_ms
    reads = read_groups(warehouse, state)
    most = request.limits.rewrite_bytes
    if most is not None:
        check_masks(warehouse, state)
    plans = tuple(
        replace(plan, rewrite_bytes=most) for plan in plan_rounds(warehouse, state, request.partitions, now_ms, reads)
    )
    at_once = (plans,) if most is None else tuple((plan,) for plan in plans)  # in parts, each log alone has all slots
    shapes = [shape for some in at_once for shape in key_pass_shapes(some, request.limits.task_memory_bytes, slots)]
    return PlanReport(
        topic=str(name),
        version=state.version,
        logs=tuple(plan_report(plan, shape.most_reads) for plan, shape in zip(plans, shapes, strict=True)),
        now_ms=now_ms,
        now_given=request.now_ms is not None,
        groups_error=reads.error,
        old_version_until_ms=warehouse.clock.now_ms() + state.settings.versions_retention_ms,
        worker_bytes_at_most=worker_bytes(request.limits.task_memory_bytes),
    )


def compact(
    warehouse: Warehouse,
    engine: RewriteEngine,
    name: TopicName,
    request: RunRequest,
    progress: Progress = silent,
) -> RoundReport:
    """One round now over the logs of a topic, at any dirty ratio (C30), under what its stream says now (C56).

    It loads the topic once before the round, and once for the commit. With `limits.rewrite_bytes` it makes as many
    rounds as that takes, and its report is of all of them.

    A log that fails has an `error` in the report. Raises `UnknownTopicError`, `PolicyError`, what `inherit_now`
    raises, or `UnknownOutcomeError` if the answer to the commit was lost and the outcome cannot be determined.
    """
    state = inherit_now(warehouse, name)
    run = Run(warehouse, engine, request.limits, request.now_ms, progress, request.notes, request.profile)
    wanted = None if request.partitions is None else tuple(request.partitions)
    if request.limits.rewrite_bytes is None:
        result = run_rounds(run, {name: wanted}, {} if state is None else {name: state})[name]
        if isinstance(result, LithifyError):
            raise result
    else:
        from lithify.service.round.in_groups import rounds_in_groups

        before = state or warehouse.store.load(name)
        check_masks(warehouse, before)
        result = rounds_in_groups(run, before, tuple(before.partitions) if wanted is None else wanted)
    report = result.report
    with suppress(LithifyError):  # the round has ended, whether its space can be read or not
        report = replace(report, space=space_of(warehouse.store, result.state))
    return report
