"""Applies retention now: drops segments that are past it from the front of every log (C24, C25, C62). No Spark."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lithify.errors import PolicyError
from lithify.model.groups.reads import NO_READS
from lithify.model.names import TopicName
from lithify.model.segment import Segment, by_partition
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.cut import CutReport, LogCut, cut_report, log_cut
from lithify.rules.compaction.eligible.retention import gone_segments
from lithify.rules.lifecycle.cuts import retained
from lithify.rules.lifecycle.replicas import check_own
from lithify.service.change.streams import inherit_now
from lithify.service.clock_check import check_clock
from lithify.service.commit import commit
from lithify.service.group_reads import read_groups


def retain(
    warehouse: Warehouse, name: TopicName, *, now_ms: int | None = None, partitions: Collection[int] | None = None
) -> CutReport:
    """Applies retention to all logs of a topic, or to some, as of `now_ms` or the clock, and trims backlogs by groups.

    Before that the topic inherits what its stream says now (C56).

    Raises `PolicyError` if nothing is retained by age, size or groups, `ClockError`, `UnknownTopicError`, or what
    `commit` raises.
    """
    inherit_now(warehouse, name)
    run_id = warehouse.clock.new_id()
    judged_ms = warehouse.clock.now_ms() if now_ms is None else now_ms
    cuts: list[LogCut] = []
    reads = NO_READS

    def decide(newest: TopicState) -> TopicEdit | None:
        nonlocal reads
        cuts.clear()
        check_own(newest)
        if not newest.settings.retains:
            raise PolicyError(
                f"{name}: cleanup.policy={newest.settings.cleanup_policy} has no retention",
                hint=f"compact it with `lithify compact {name}`; "
                "retention needs delete in cleanup.policy, or backlog.trim.groups",
            )
        logs: dict[int, LogState] = {}
        removed: list[Segment] = []
        segments = by_partition(warehouse.store.segments(newest))
        reads = read_groups(warehouse, newest)
        for log in newest.logs:
            if partitions is not None and log.partition not in partitions:
                continue
            here = segments.get(log.partition, ())
            read_below = reads.of(log.partition).backlog_below
            gone = gone_segments(log, here, newest.settings, judged_ms, read_below)
            if gone:
                logs[log.partition] = retained(log, gone, here[len(gone) :], newest.settings)
                removed += gone
                cuts.append(log_cut(log, logs[log.partition], gone))
        if not logs:
            return None
        if now_ms is None:
            check_clock(warehouse.clock, newest, judged_ms)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, remove=tuple(removed), verb=Verb.RETAIN)

    state = commit(warehouse, name, run_id, decide)
    report = cut_report(state, Verb.RETAIN, cuts, judged_ms)
    return replace(report, now_given=now_ms is not None, groups_error=reads.error)
