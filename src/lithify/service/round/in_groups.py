"""Rounds that rewrite part by part where there is no room for all at once: each commit releases what it replaced (C42).

    round 1   everything is compacted: masks hide the losers, and the first segments are rewritten
    round 2   segments whose masks hide too much are rewritten: at most as many bytes as are given
    ...       until none waits. After each, versions that have expired go, and their files

Each round is one like any other, so that readers see a compacted log from the first on, and an interrupted user
continues by running them again. Logs are taken one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from lithify.errors import ConflictError, LithifyError
from lithify.errors.defects import as_lithify_error
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.engine import unsaid
from lithify.reports.rounds.round import LogReport, Losers, RoundReport
from lithify.service.change.sweep import expire_and_sweep
from lithify.service.round.run import Run, run_rounds
from lithify.service.round.topic_run import TopicResult

_SUMMED = (
    "tombstones_unversioned",
    "segments_rewritten",
    "segments_merged",
    "segments_masked",
    "segments_written",
    "bytes_read",
    "bytes_written",
)


def rounds_in_groups(run: Run, state: TopicState, partitions: Sequence[int]) -> TopicResult:
    """Rounds of one log after the other, by `run.limits.rewrite_bytes`, until no segment waits to be rewritten.

    At most as many for a log as it has segments after its first, however much is appended meanwhile: each rewrites one
    at least. The report is of all together. Raises what fails the whole topic, `ConflictError` if it was recreated.
    """
    name, release = state.name, partial(_release, run, state.name)
    results: list[TopicResult] = []
    for partition in partitions:
        left: int | None = None
        while left != 0:
            if results:
                state = _newest(run, state)
                run = replace(run, notes=unsaid)
            result = run_rounds(run, {name: (partition,)}, {name: state})[name]
            if isinstance(result, LithifyError):
                raise result
            results.append(result)
            if result.report.changed:
                release()
            (log,) = result.report.logs
            if log.error is not None or not log.segments_waiting:
                break
            left = _segments_out(log) if left is None else left - 1
    last = results[-1]
    return replace(last, report=_together([result.report for result in results]))


def _newest(run: Run, state: TopicState) -> TopicState:
    newest = run.warehouse.store.load(state.name)
    if newest.identity != state.identity:
        raise ConflictError(f"{state.name}: the topic was deleted and recreated between two of its rounds")
    return newest


def _release(run: Run, name: TopicName) -> None:
    """Deletes the files of versions that have expired. If that fails, the rounds continue and report why."""
    try:
        expire_and_sweep(run.warehouse, name, delete=True)
    except Exception as error:
        run.notes(f"{name}: replaced files remain for now: {as_lithify_error(error, name)}")


def _together(reports: Sequence[RoundReport]) -> RoundReport:
    """One report of all rounds: what was before the first or came later, and what is there after the last."""
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
    if last.error is not None and len(logs) > 1:  # the log is as the round before has left it
        logs = logs[:-1]
        last = replace(logs[-1], error=last.error, error_code=last.error_code)
    phases_ms: Counter[str] = Counter()
    for log in logs:
        phases_ms.update(log.phases_ms)
    losers = {name: sum(getattr(log.losers, name) for log in logs) for name in Losers.__dataclass_fields__}
    came = {
        f"{what}_in": getattr(first, f"{what}_in")
        + sum(getattr(later, f"{what}_in") - getattr(log, f"{what}_out") for log, later in pairwise(logs))
        for what in ("records", "tombstones", "bytes")
    }
    return replace(
        last,
        first_dirty_offset=first.first_dirty_offset,
        log_start_offset=first.log_start_offset,
        segments_in=first.segments_in + sum(b.segments_in - _segments_out(a) for a, b in pairwise(logs)),
        keys=max(log.keys for log in logs),
        losers=Losers(**losers),
        missed_by=tuple(sorted({group for log in logs for group in log.missed_by})),
        phases_ms=dict(phases_ms),
        changed=any(log.changed for log in logs),
        **came,
        **{name: sum(getattr(log, name) for log in logs) for name in _SUMMED},
    )


def _segments_out(log: LogReport) -> int:
    """How many segments a round has left."""
    return log.segments_kept + log.segments_masked + log.segments_written
