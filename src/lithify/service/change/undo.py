"""Undoes the last round: `undo` (C6, C7).

versions    12 ──round r──► 13 ──append──► 14 ──undo──► 15     below the horizon of r the logs are
            kept                                               those of 12 again, with what 14 added
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.errors import NothingToUndoError
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment, segments_of, sizes_of, without
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.cut import CutReport, LogCut, log_cut
from lithify.reports.rounds.round import LogReport
from lithify.rules.lifecycle.clocks import as_confirmed
from lithify.rules.lifecycle.replicas import check_own
from lithify.rules.lifecycle.undoing import LogFiles, files_after, obstacle, state_after_undo
from lithify.service.commit import commit
from lithify.service.documents import reports_of
from lithify.service.last_record import last_record


def undo(warehouse: Warehouse, name: TopicName) -> CutReport:
    """Undoes the last round that was not undone yet, in all logs that it changed.

    Raises `NothingToUndoError`, which says why, `UnknownTopicError`, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    decided: list[_Edit] = []

    def decide(newest: TopicState) -> TopicEdit:
        decided[:] = [_Edit(warehouse, newest, _target(warehouse, newest))]
        return decided[0].whole(run_id)

    state = commit(warehouse, name, run_id, decide)
    return decided[0].report(state.version)


def plan_undo(warehouse: Warehouse, name: TopicName) -> CutReport:
    """What `undo` would do to the newest version; raises what it raises."""
    newest = warehouse.store.load(name)
    edit = _Edit(warehouse, newest, _target(warehouse, newest))
    edit.whole("")
    return edit.report(newest.version)


@dataclass(frozen=True, slots=True)
class _Target:
    """The round to undo: the version it closed, and its part in each log that it changed."""

    run_id: str
    then: TopicState
    logs: tuple[LogReport, ...]


def _target(warehouse: Warehouse, newest: TopicState) -> _Target:
    """The newest round that was not undone. Raises `NothingToUndoError`."""
    name = newest.name
    check_own(newest)
    stands = {log.last_round for log in newest.logs} - {""}
    if not stands:
        raise NothingToUndoError(f"{name}: there is no round to undo", hint="list its rounds with `lithify history`")
    kept = [v for v in warehouse.store.versions(name) if v.verb is Verb.COMPACT and v.closed_by in stands]
    if not kept:
        raise NothingToUndoError(
            f"{name}: the version before the last round is no longer retained",
            hint="list the retained versions with `lithify versions`; versions.kept and versions.retention.ms set how "
            "many there are",
        )
    run_id = kept[0].closed_by
    report = next((r for r in reports_of(warehouse.store, newest) if r.run_id == run_id), None)
    if report is None:
        raise NothingToUndoError(f"{name}: the report of round {run_id} is no longer stored")
    then = warehouse.store.load_version(name, kept[0].version)
    return _Target(run_id, then, tuple(log for log in report.logs if log.changed))


class _Edit:
    """Collects what the commit changes, log by log."""

    def __init__(self, warehouse: Warehouse, newest: TopicState, target: _Target) -> None:
        partitions = [log.partition for log in target.logs]
        store = warehouse.store
        self.add: list[Segment] = []
        self.remove: list[Segment] = []
        self.view_add: list[Segment] = []
        self.view_remove: list[Segment] = []
        self.cuts: list[LogCut] = []
        self._warehouse = warehouse
        self._newest = newest
        self._target = target
        self._now = store.segments(newest, partitions), store.view(newest, partitions)
        self._then = store.segments(target.then, partitions), store.view(target.then, partitions)

    def whole(self, run_id: str) -> TopicEdit:
        """The edit of all logs. Raises `NothingToUndoError`."""
        logs = {log.partition: self._taken_back(log) for log in self._target.logs}
        return TopicEdit(
            run_id,
            self._warehouse.clock.now_ms(),
            logs,
            add=tuple(self.add),
            remove=tuple(self.remove),
            view_add=tuple(self.view_add),
            view_remove=tuple(self.view_remove),
            verb=Verb.UNDO,
        )

    def report(self, version: int) -> CutReport:
        """The report of the edit, committed as `version`."""
        now_ms, undone = self._warehouse.clock.now_ms(), self._target.run_id
        times = (log.last_round_ms for log in self._newest.logs if log.last_round == undone)
        return CutReport(
            str(self._newest.name),
            Verb.UNDO,
            version,
            True,
            tuple(self.cuts),
            now_ms,
            undone_run_id=undone,
            undone_round_ms=next(times, None),
        )

    def _taken_back(self, round_: LogReport) -> LogState:
        """The state of one log without the round."""
        partition = round_.partition
        log, then_log = self._newest.log(partition), self._target.then.log(partition)
        before = as_confirmed(then_log, self._target.then, self._newest)
        reason = obstacle(log, before, round_, self._target.run_id)
        if reason is not None:
            raise NothingToUndoError(
                f"{LogId(self._newest.name, partition)}: cannot undo the round: {reason}",
                hint=f"read the earlier records with `lithify consume {self._newest.name} --version "
                f"{self._target.then.version}`, and append the missing ones",
            )
        now, then = _files(self._now, partition), _files(self._then, partition)
        after = files_after(now, then, round_)
        add, remove = without(after.segments, now.segments), without(now.segments, after.segments)
        view_add, view_remove = without(after.view, now.view), without(now.view, after.view)
        self._check_there(partition, add + view_add)
        self.add += add
        self.remove += remove
        self.view_add += view_add
        self.view_remove += view_remove
        last = last_record(self._warehouse, after.segments, log.last_record or before.last_record)
        state = state_after_undo(log, before, round_, after, last_record=last)
        self.cuts.append(log_cut(log, state, remove + view_remove, add + view_add))
        return state

    def _check_there(self, partition: int, segments: tuple[Segment, ...]) -> None:
        missing = self._warehouse.files.missing(list(sizes_of(segments)))
        if missing:
            raise NothingToUndoError(
                f"{LogId(self._newest.name, partition)}: {missing[0]} is missing, so the round cannot be undone"
            )


def _files(all_files: tuple[tuple[Segment, ...], tuple[Segment, ...]], partition: int) -> LogFiles:
    segments, view = all_files
    return LogFiles(segments_of(segments, partition), segments_of(view, partition))
