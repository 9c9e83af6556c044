"""The plans of a run, from the metadata of a topic (C14, C30)."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.compaction.planner import LogPlan, plan_log
from lithify.errors import PolicyError
from lithify.model.log import TopicState, segments_of
from lithify.ports.store import Warehouse


def plan_rounds(
    warehouse: Warehouse, state: TopicState, partitions: Sequence[int] | None, now_ms: int
) -> tuple[LogPlan, ...]:
    """The rounds that would run at `now_ms`, one per log of `partitions`, or of all.

    Raises `PolicyError` where the topic does not compact, `UnknownTopicError` for a partition that
    it does not have, `DamagedError` where a manifest cannot be read.
    """
    if not state.settings.compacts:
        raise PolicyError(
            f"{state.name}: cleanup.policy={state.settings.cleanup_policy} does not compact",
            hint="`lithify retain` applies its retention",
        )
    wanted = tuple(state.partitions) if partitions is None else partitions
    for partition in wanted:
        state.check_partition(partition)
    segments = warehouse.store.segments(state, wanted)
    view = warehouse.store.view(state, wanted) if state.settings.side_by_side else ()
    return tuple(
        plan_log(state.log(p), segments_of(segments, p), state.settings, now_ms, segments_of(view, p)) for p in wanted
    )
