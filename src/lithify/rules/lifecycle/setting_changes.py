"""What a changed setting does to existing logs (C43).

A change counts from the next round, makes every log due once and restores nothing. A few also
change the state:

    empty.value to tombstone      the next round covers everything again: there are more tombstones than counted
    delete to compact             no round has covered the log: D = S
    in-place to side-by-side      the log becomes the backlog: D = S, no view yet
    side-by-side to in-place      refused while there is a view
    message.ids                   refused: it says which columns the records have
"""

from __future__ import annotations

from dataclasses import replace

from lithify.errors import InvalidSettingError, PolicyError
from lithify.model.segment import Segment, by_partition
from lithify.model.settings.topic_settings import TopicSettings, changes
from lithify.model.settings.units import plural
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.admission import check_partitions
from lithify.rules.lifecycle.cuts import uncompacted


def altered(
    state: TopicState, segments: tuple[Segment, ...], settings: TopicSettings, partitions: int
) -> dict[int, LogState]:
    """By partition the state of every log that changes or is new; none if nothing changes.

    `segments` are all of the topic. Raises `PolicyError` if a view would be lost, and
    `InvalidSettingError` for fewer partitions, `RefusedError` for too many.
    """
    if partitions < len(state.logs):
        raise InvalidSettingError(
            f"{state.name} has {plural(len(state.logs), 'partition')} and cannot be changed to {partitions}",
            hint="set a higher number: removing partitions would remove records",
        )
    if partitions > len(state.logs):
        check_partitions(partitions)
    if settings.message_ids != state.settings.message_ids:
        raise InvalidSettingError(
            f"{state.name}: message.ids={state.settings.message_ids} cannot be changed",
            hint="create another topic: this setting selects the columns of its records",
        )
    if state.settings.side_by_side and not settings.side_by_side:
        _check_no_view(state)
    changed, own = changes(state.settings, settings), by_partition(segments)
    logs = (
        {}
        if not changed
        else {
            log.partition: altered_log(log, own.get(log.partition, ()), state.settings, settings) for log in state.logs
        }
    )
    return logs | {new: LogState(new) for new in range(len(state.logs), partitions)}


def altered_log(log: LogState, segments: tuple[Segment, ...], before: TopicSettings, after: TopicSettings) -> LogState:
    """The state of one log, whose `segments` these are, under other settings (C43)."""
    if log.log_end_offset == 0:
        return log
    if after.compacts:
        log = replace(log, round_required=f"changed: {', '.join(changes(before, after))}")
    log = replace(log, held=None, aged_before_ms=None)  # both were judged by the earlier settings (C20, C24)
    if after.empty_is_tombstone and not before.empty_is_tombstone:
        log = replace(log, steps=(), uncovered=True)
    if (after.compacts and not before.compacts) or (after.side_by_side and not before.side_by_side):
        return replace(uncompacted(log, segments), round_required=log.round_required)
    return log


def _check_no_view(state: TopicState) -> None:
    with_view = [log.partition for log in state.logs if log.view is not None]
    if with_view:
        raise PolicyError(
            f"{state.name}: partition {with_view[0]} has a compacted view, which in-place topics do not have",
            hint=f"drop it first: `lithify topic uncompact {state.name} --yes`",
        )
