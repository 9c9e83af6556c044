"""Rounds that rewrite part by part where there is no room for all at once: each commit releases what it replaced (C42).

    round 1   everything is compacted: masks hide the losers, and the first segments are rewritten
    round 2   segments whose masks hide too much are rewritten: at most as many bytes as are given
    ...       until none waits. After each, versions that have expired go, and their files

Each round is one like any other, so that readers see a compacted log from the first on, and who is interrupted goes on
by running them again. Logs are taken one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lithify.errors import LithifyError, PolicyError
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.engine import unsaid
from lithify.reports.rounds.round import LogReport, Losers, RoundReport
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.documents import may_have_masks
from lithify.service.round.run import Run, run_rounds
from lithify.service.round.topic_run import TopicResult

_SUMMED = (
    "segments_rewritten",
    "segments_merged",
    "segments_masked",
    "segments_written",
    "bytes_read",
    "bytes_written",
)


def check_masks(run: Run, state: TopicState) -> None:
    """Raises `PolicyError` where rounds may not leave dead records in masks."""
    if state.round_settings.segment_max_dead_ratio == 0:
        reason, hint = "segment.max.dead.ratio=0 allows no masks", "compact without it, or alter the setting"
    elif not may_have_masks(run.warehouse.store, state):
        reason, hint = "its warehouse has no masks", "`lithify warehouse upgrade` lets rounds write them"
    else:
        return
    raise PolicyError(f"{state.name}: {reason}, and partial progress needs them", hint=hint)


def rounds_in_groups(
    run: Run, name: TopicName, partitions: Sequence[int], loaded: TopicState | None
) -> TopicResult | LithifyError:
    """Rounds of one log after the other, by `run.limits.rewrite_bytes`, until no segment waits to be rewritten.

    At most as many for a log as segments waited after its first, however much is appended meanwhile. The report is of
    all together.
    """
    results: list[TopicResult] = []
    for partition in partitions:
        left: int | None = None
        while left != 0:
            given = {} if loaded is None or results else {name: loaded}
            result = run_rounds(replace(run, notes=unsaid) if results else run, {name: (partition,)}, given)[name]
            if isinstance(result, LithifyError):
                return result
            results.append(result)
            if result.report.changed:
                _release(run, name)
            (log,) = result.report.logs
            waiting = 0 if log.error is not None else log.segments_waiting
            left = waiting if left is None else min(waiting, left - 1)
    last = results[-1]
    return replace(last, report=_together([result.report for result in results]))


def _release(run: Run, name: TopicName) -> None:
    """Deletes the files of versions that have expired. The rounds go on without if that fails, and say why."""
    try:
        expire_versions(run.warehouse, name)
        sweep(run.warehouse, name, delete=True)
    except LithifyError as error:
        run.notes(f"{name}: what was replaced stays for now: {error}")


def _together(reports: Sequence[RoundReport]) -> RoundReport:
    """One report of all rounds: what was before the first, and is after the last."""
    by_partition: dict[int, list[LogReport]] = {}
    for report in reports:
        for log in report.logs:
            by_partition.setdefault(log.partition, []).append(log)
    return replace(
        reports[-1],
        changed=any(report.changed for report in reports),
        logs=tuple(_log_together(logs) for logs in by_partition.values()),
        duration_ms=sum(report.duration_ms for report in reports),
        now_ms=reports[0].now_ms,
    )


def _log_together(logs: Sequence[LogReport]) -> LogReport:
    first, last = logs[0], logs[-1]
    phases_ms: Counter[str] = Counter()
    for log in logs:
        phases_ms.update(log.phases_ms)
    losers = {name: sum(getattr(log.losers, name) for log in logs) for name in Losers.__dataclass_fields__}
    return replace(
        last,
        first_dirty_offset=first.first_dirty_offset,
        log_start_offset=first.log_start_offset,
        records_in=first.records_in,
        tombstones_in=first.tombstones_in,
        segments_in=first.segments_in,
        bytes_in=first.bytes_in,
        losers=Losers(**losers),
        phases_ms=dict(phases_ms),
        changed=any(log.changed for log in logs),
        **{name: sum(getattr(log, name) for log in logs) for name in _SUMMED},
    )
