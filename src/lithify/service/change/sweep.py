"""Deletes files that no retained version names any more; no other module deletes them (C6, C45).

named before ─► list the folder ─► named after ─► plan: what may go, and since when
                                                    │ with `delete`
     named once, replaced since    delete ◄─────────┤
     never named   delete ◄── fence: a commit that ◄┘
                              moves the version and abandons the runs whose files go

No commit after the fence can name a file that the fence found unnamed: an edit decided on an earlier version
is refused as stale, and `commit` refuses the abandoned runs. So the files may be deleted however long that
takes, also by a sweep that was suspended in between. A file that was named once can be named again only by
an `undo` of a round whose version is kept, and that version still names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lithify.errors import ConflictError, DamagedError, UnusualSweepError
from lithify.model.names import TopicName
from lithify.model.stored_file import NamedFiles, OtherCommit, StoredFile
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.topic_space import SweepReport, SweptFile
from lithify.rules.lifecycle.sweeping import (
    RUNS_REMEMBERED,
    SweepPlan,
    lost_from_listing,
    plan_sweep,
    remembered,
    still_abandoned,
)
from lithify.service.change.expire import expire_versions, versions_to_expire
from lithify.service.change.streams import as_inherited
from lithify.service.clock_check import check_clock
from lithify.service.commit import commit


def sweep(warehouse: Warehouse, name: TopicName, *, delete: bool, allow_unusual: bool = False) -> SweepReport:
    """Lists the files of a topic that may be deleted; with `delete` it deletes them.

    With `allow_unusual` it gives up commits that the catalog does not have: their metadata is deleted like files
    that no version has named, so that no later sweep asks.

    Raises `UnusualSweepError` if a person should look first, unless `allow_unusual`; `DamagedError`
    where a file that is needed is not in the folder; `UnknownTopicError`, or what `as_inherited` and `commit` raise.
    """
    look, plan = _planned(warehouse, name, refuses=delete and not allow_unusual, gives_up=allow_unusual)
    state, now_ms = look.state, look.now_ms
    if not delete:
        return _report(name, plan, plan.files, now_ms, deleted=False)
    if plan.files:
        check_clock(warehouse.clock, state, now_ms)
    look.delete(plan.replaced)  # first, as it makes room on a full disk for what follows
    warehouse.store.note_named(state, look.stored, look.named, look.named_ms)
    unnamed = look.fenced(plan)
    look.delete(unnamed)
    return _report(name, plan, plan.replaced + unnamed, now_ms, deleted=True)


def refuse_sweep(warehouse: Warehouse, name: TopicName, *, allow_unusual: bool = False) -> None:
    """Raises what `sweep` would raise before it deletes a file, for who changes the topic first."""
    _planned(warehouse, name, refuses=not allow_unusual, gives_up=allow_unusual)


def expire_and_sweep(
    warehouse: Warehouse, name: TopicName, *, delete: bool, allow_unusual: bool = False
) -> SweepReport:
    """`sweep`, with `delete` once versions past their retention have expired (C7); without, it names these.

    Raises as `sweep` does, then before a version expires that a person may need; or what `expire_versions` raises.
    """
    expired = versions_to_expire(warehouse, warehouse.store.load(name), warehouse.clock.now_ms())
    if delete and expired:
        refuse_sweep(warehouse, name, allow_unusual=allow_unusual)
        report = expire_versions(warehouse, name)
        expired = () if report is None else report.expired
    return replace(sweep(warehouse, name, delete=delete, allow_unusual=allow_unusual), expired_versions=expired)


def _planned(warehouse: Warehouse, name: TopicName, *, refuses: bool, gives_up: bool) -> tuple[_Look, SweepPlan]:
    now_ms = warehouse.clock.now_ms()
    look = _Look(warehouse, warehouse.store.load(name), now_ms)
    plan = look.plan(gives_up=gives_up)
    if refuses:
        _refuse_unusual(look, plan)
    return look, plan


def _refuse_unusual(look: _Look, plan: SweepPlan) -> None:
    name = look.state.name
    other = look.other_commit()
    if other is not None:
        raise UnusualSweepError(
            f"{name}: {other.problem(look.state.version)}; nothing was deleted",
            hint="delete nothing through this catalog while another catalog has the topic; if none has, see that "
            f"commit with `lithify repair {name} --metadata {other.path}`, or give it up with `lithify sweep "
            f"{name} --yes --allow-unusual`",
        )
    if plan.unusual:
        raise UnusualSweepError(
            f"{name}: {plan.unusual}; nothing was deleted",
            hint="list them with `lithify sweep`, and delete them with `lithify sweep --yes --allow-unusual`",
        )


def _report(
    name: TopicName, plan: SweepPlan, files: tuple[SweptFile, ...], now_ms: int, *, deleted: bool
) -> SweepReport:
    return SweepReport(
        topic=str(name),
        deleted=deleted,
        files=files,
        now_ms=now_ms,
        stored_bytes=plan.stored_bytes,
        metadata_bytes=plan.metadata_bytes,
        waiting_files=len(plan.waiting),
        waiting_bytes=sum(file.size_bytes for file in plan.waiting),
    )


@dataclass(slots=True)
class _Look:
    """One listing of the folder of a topic."""

    warehouse: Warehouse
    state: TopicState
    now_ms: int
    stored: tuple[StoredFile, ...] = field(default=())
    named: NamedFiles = field(default=NamedFiles(frozenset()))
    """The files that were named after the folder was listed."""
    named_ms: int = 0
    """A time right after that: files not named then were unnamed by this time."""

    def plan(self, *, gives_up: bool) -> SweepPlan:
        """The files that may be deleted, after the times that the stream says now (C56).

        With `gives_up` the metadata of commits that the catalog does not have counts as never named.
        """
        store, name = self.warehouse.store, self.state.name
        before = store.named_files(name)
        self.stored = tuple(store.stored_files(self.state))
        closings = store.closings(self.state, self.stored, self.now_ms)
        self.named = store.named_files(name)
        self.named_ms = self.warehouse.clock.now_ms()
        lost = lost_from_listing(before, self.named, self.stored)
        if lost is not None:
            raise DamagedError(
                f"{name}: {lost} is needed, but is not in the topic's folder {self.state.location}: nothing was "
                "deleted",
                hint="restore it from a backup or a replica; find other missing files with `lithify verify`",
            )
        other = self.other_commit() if gives_up else None
        if other is not None:
            closings = {path: closing for path, closing in closings.items() if path not in other.metadata}
        settings = as_inherited(self.warehouse, self.state).settings
        return plan_sweep(self.stored, self.named, closings, settings, self.now_ms)

    def other_commit(self) -> OtherCommit | None:
        return self.warehouse.store.other_commit(self.state, self.stored, self.named)

    def delete(self, files: Sequence[SweptFile]) -> None:
        if files:
            self.warehouse.store.delete_files(self.state, [file.path for file in files])

    def fenced(self, plan: SweepPlan) -> tuple[SweptFile, ...]:
        """Commits the fence; returns the unnamed files of the plan, which no commit can name from then on."""
        if not plan.unnamed:
            return ()
        warehouse, run_id = self.warehouse, self.warehouse.clock.new_id()
        files = plan.unnamed

        def decide(newest: TopicState) -> TopicEdit | None:
            nonlocal files
            if newest.identity != self.state.identity:
                raise ConflictError(f"{newest.name}: the topic was recreated during the sweep", hint="sweep again")
            named = warehouse.store.named_files(newest.name)
            files = tuple(file for file in plan.unnamed if file.path not in named)
            if not files:
                return None
            abandon = self._abandoned(newest, plan.abandon, named)
            return TopicEdit(run_id, warehouse.clock.now_ms(), {}, verb=Verb.SWEEP, abandon=abandon)

        commit(warehouse, self.state.name, run_id, decide)
        return files

    def _abandoned(self, newest: TopicState, abandon: tuple[str, ...], named: NamedFiles) -> tuple[str, ...]:
        """The runs that may not commit: these, and those abandoned before, of many only those that still have files."""
        known = (*(run_id for run_id in newest.abandoned if run_id not in abandon), *abandon)
        if len(known) <= RUNS_REMEMBERED:
            return known
        # Read again: files that another sweep abandoned since the first look are still to be deleted.
        stored = self.warehouse.store.stored_files(newest)
        return remembered(known, {*abandon, *still_abandoned(newest.abandoned, stored, named)})
