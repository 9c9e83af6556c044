"""Whether a commit has landed whose answer was lost, or that met a conflict (C6).

    base ── ours? ── others ── newest        a log's state has the runs of its latest commits only

A conflict proves nothing: a client or proxy that repeats a request gets a conflict with its first sending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from lithify.model.segment import Segment
from lithify.model.topic.edit import KEEPS_EPOCH, TopicEdit
from lithify.model.topic.log import RUN_IDS_KEPT, LogState
from lithify.model.topic.state import TopicState

SegmentsOf = Callable[[Sequence[int]], Iterable[Segment]]
"""By partitions, the segments of a version."""


class Landing(Enum):
    """What the newest version says of a commit."""

    LANDED = "landed"
    NOT_LANDED = "not landed"
    UNKNOWN = "unknown"


def landing(edit: TopicEdit, base: TopicState, newest: TopicState, segments: SegmentsOf) -> Landing:
    """Whether `edit`, made on `base`, is part of `newest`, whose `segments` are asked for only if it takes them.

    It is if a log that it changes has its run, or if one of its files is named. It is not if
    neither is the case and a log has all runs since `base`, or has had no commit that removes
    files. An edit that has not landed on `base` yet may still do so; the next swap asserts a version, so only one
    of the two can. An edit that changes no log cannot be recognized. It counts as not landed, as its
    caller decides again on the newest version, and finds nothing left to do if it did land.
    """
    if newest.identity != base.identity:
        return Landing.UNKNOWN
    there = [partition for partition in edit.logs if partition in newest.partitions]
    logs = [(base.log(p) if p in base.partitions else LogState(p), newest.log(p)) for p in there]
    if not logs:  # the edit changes none, or would have added these partitions
        return Landing.NOT_LANDED
    if any(edit.run_id in now.run_ids for _, now in logs):
        return Landing.LANDED
    if any(_remembers(now, before) for before, now in logs):
        return Landing.NOT_LANDED
    ours = {segment.id for segment in edit.add}
    if ours and any(segment.id in ours for segment in segments(list(edit.logs))):
        return Landing.LANDED
    shows = bool(ours) or edit.verb not in KEEPS_EPOCH  # in files that stay, or in the epoch itself
    same_epochs = all(before.epoch == now.epoch for before, now in logs)
    return Landing.NOT_LANDED if shows and same_epochs else Landing.UNKNOWN


def _remembers(now: LogState, before: LogState) -> bool:
    """Whether a log's state has the runs of all commits since it was `before`."""
    return before.run_ids[-1] in now.run_ids if before.run_ids else len(now.run_ids) < RUN_IDS_KEPT
