"""Changing the settings and partitions of a topic that has data (C43), and dropping its view (C35)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lithify.errors import DamagedError, PolicyError
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment, segments_of
from lithify.model.settings.inheritance import after_change
from lithify.model.settings.topic_settings import changes, to_config
from lithify.model.settings.units import plural
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.changed_settings import AlterReport, SettingChange
from lithify.reports.cut import CutReport, LogCut, cut_report, log_cut
from lithify.rules.lifecycle.copies.ownership import check_takes_partitions
from lithify.rules.lifecycle.cuts import uncompacted
from lithify.rules.lifecycle.replicas import check_own
from lithify.rules.lifecycle.setting_changes import altered
from lithify.service.commit import commit
from lithify.service.creation import attributes_of


def alter(
    warehouse: Warehouse,
    name: TopicName,
    config: Mapping[str, object],
    *,
    unset_names: Iterable[str] = (),
    partitions: int | None = None,
    check_partitions: Callable[[TopicState], None] = check_takes_partitions,
) -> AlterReport:
    """Sets and unsets settings and adds partitions, all in one commit; `check_partitions` may refuse new ones.

    What is set is the topic's own from then on, what is unset it inherits from its stream again (C56).
    Raises `InvalidSettingError`, `PolicyError`, `UnknownTopicError`, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    names = tuple(unset_names)
    before: list[TopicState] = []

    def decide(newest: TopicState) -> TopicEdit | None:
        before[:] = [newest]
        check_own(newest)
        if partitions is not None and partitions != len(newest.logs):
            check_partitions(newest)
        # After the load: a change of the stream stores its attributes before it alters topics.
        attributes = attributes_of(warehouse.store, name.stream)
        inherited = None if attributes is None else attributes.inherited
        settings, own = after_change(newest.settings, newest.own_settings, inherited, config, names)
        segments = warehouse.store.segments(newest) if settings != newest.settings else ()
        logs = altered(newest, segments, settings, len(newest.logs) if partitions is None else partitions)
        if own != newest.own_settings:
            logs = {log.partition: log for log in newest.logs} | logs  # they tell that the commit landed
        if not logs:
            return None
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, settings=settings, own_settings=own, verb=Verb.ALTER)

    state = commit(warehouse, name, run_id, decide)
    return _altered_report(before[0], state)


def _altered_report(before: TopicState, after: TopicState) -> AlterReport:
    old, new = to_config(before.settings), to_config(after.settings)
    names = changes(before.settings, after.settings)
    return AlterReport(
        topic=str(after.name),
        version=after.version,
        changed=after.version != before.version,
        own=tuple(sorted(after.own_settings - before.own_settings)),
        inherited=tuple(sorted(before.own_settings - after.own_settings)),
        settings={name: SettingChange(old[name], new[name]) for name in names},
        partitions=len(before.logs),
        partitions_after=len(after.logs),
        logs_due=sum(1 for log in after.logs if names and after.settings.compacts and log.round_required),
    )


def uncompact(warehouse: Warehouse, name: TopicName, *, lose_trimmed: bool = False) -> CutReport:
    """Drops the compacted view of every log; the backlog alone remains (C35).

    Raises `PolicyError` for an in-place topic, or where the backlog was trimmed and the view alone
    has records, unless `lose_trimmed`.
    """
    run_id = warehouse.clock.new_id()
    cuts: list[LogCut] = []

    def decide(newest: TopicState) -> TopicEdit | None:
        return _uncompacting(warehouse, newest, run_id, cuts, lose_trimmed=lose_trimmed)

    state = commit(warehouse, name, run_id, decide)
    return cut_report(state, Verb.UNCOMPACT, cuts, warehouse.clock.now_ms())


def plan_uncompact(warehouse: Warehouse, name: TopicName, *, lose_trimmed: bool = False) -> CutReport:
    """What `uncompact` would do to the newest version; raises what it raises."""
    newest, cuts = warehouse.store.load(name), list[LogCut]()
    _uncompacting(warehouse, newest, "", cuts, lose_trimmed=lose_trimmed)
    return cut_report(newest, Verb.UNCOMPACT, cuts, warehouse.clock.now_ms())


def _uncompacting(
    warehouse: Warehouse, newest: TopicState, run_id: str, cuts: list[LogCut], *, lose_trimmed: bool
) -> TopicEdit | None:
    check_own(newest)
    cuts.clear()
    if not newest.settings.side_by_side:
        raise PolicyError(
            f"{newest.name}: an in-place topic has no compacted view to drop",
            hint="its compacted log is its only log; nothing was changed",
        )
    segments, view = warehouse.store.segments(newest), _views_to_drop(warehouse, newest, lose_trimmed)
    logs: dict[int, LogState] = {}
    for log in newest.logs:
        if log.view is None:
            continue
        mine = segments_of(view, log.partition)
        if not lose_trimmed:
            _check_not_trimmed(warehouse, LogId(newest.name, log.partition), log, mine)
        logs[log.partition] = uncompacted(log, segments_of(segments, log.partition))
        cuts.append(log_cut(log, logs[log.partition], mine))
    if not logs:
        return None
    return TopicEdit(run_id, warehouse.clock.now_ms(), logs, view_remove=view, verb=Verb.UNCOMPACT)


def _views_to_drop(warehouse: Warehouse, newest: TopicState, lose_trimmed: bool) -> tuple[Segment, ...]:
    try:
        return warehouse.store.view(newest)
    except DamagedError:
        if lose_trimmed:  # this repairs a topic whose view cannot be read
            return ()
        raise


def _check_not_trimmed(warehouse: Warehouse, name: LogId, log: LogState, view: tuple[Segment, ...]) -> None:
    trimmed = range(log.deleted_below, log.log_start_offset)
    only_here = sum(
        record.offset in trimmed
        for segment in view
        if segment.base_offset < log.log_start_offset
        for batch in warehouse.files.read(segment, log.deleted_below)
        for record in batch.records()
    )
    if only_here:
        raise PolicyError(
            f"{name}: {plural(only_here, 'record')} of the compacted view below the log start {log.log_start_offset} "
            "of the backlog, which was trimmed, would be lost",
            hint="add --lose-trimmed to drop the compacted view with them",
        )
