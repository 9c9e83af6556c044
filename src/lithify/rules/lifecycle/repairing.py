"""What `repair` does about the remains of a topic: a pure decision, from the best case to the worst.

    the newest version is intact, nothing after it is lost   REGISTER   as it was, with its identity
    later metadata is lost or damaged, or there is none      REBUILD    from segments, with D = S
    its deletion had begun                                   FINISH     the deletion
    commits were made since a kept version was lost          NOTHING    the newest version is whole

A rebuilt log has every segment that a version names or that fits into the log's order; masks as `repaired_masks` has it
where none names them. It may have superseded
records, which the next round judges again, as D is S; the plan's notes say what may be missing. A version
number must never mean two things, so a rebuilt topic has a new identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lithify.errors import RefusedError
from lithify.model.remains import ClosedState, Entry, MetadataFile, Remains
from lithify.model.replicas.file_names import is_copy
from lithify.model.segment import Segment, segments_of, volume_of
from lithify.model.settings.inheritance import own_names
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.sources.origin import OWN, Origin
from lithify.model.topic.append_note import CHAIN_ID
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.copies.missed_deletes import begun_after_cut
from lithify.rules.lifecycle.repaired_masks import with_masks


class Way(StrEnum):
    """What is done."""

    NOTHING = "nothing"
    REGISTER = "register"
    REBUILD = "rebuild"
    FINISH = "finish-deletion"


_BACK = "records that it had hidden are back, perhaps with values of deleted keys"
_UNKEPT = (
    "that retained version cannot be read until it expires, and commits were made since; the newest version is whole"
)


@dataclass(frozen=True, slots=True)
class RebuiltLog:
    """A log to recreate. Where `segments` overlap, their records are merged into new ones."""

    state: LogState
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What to do with the remains of a topic, and what cannot be known or is left out."""

    way: Way
    metadata: MetadataFile | None = None
    settings: TopicSettings = TopicSettings()
    own_settings: frozenset[str] = frozenset()
    logs: tuple[RebuiltLog, ...] = ()
    complete: bool = True
    """No acknowledged record is missing, as far as the existing files can tell."""
    notes: tuple[str, ...] = ()
    origin: Origin = OWN


def plan_repair(remains: Remains) -> RepairPlan:
    """Raises `RefusedError` if nothing can be decided."""
    if remains.entry is Entry.WHOLE:
        return RepairPlan(Way.NOTHING)
    if remains.deleted:
        return RepairPlan(Way.FINISH, notes=("the topic was being deleted, and these files are left",))
    best = remains.newest
    now = next((file for file in remains.files if file.path == remains.current), None)
    if now is not None and now.unkept and (best is None or best.state is None or best.state.version != now.claims):
        return RepairPlan(Way.NOTHING, notes=(f"{now.problem}; {_UNKEPT}",))
    if best is None:
        return _from_segments(remains)
    _check_only_one(remains.files, best)
    above = remains.files[: remains.files.index(best)]
    lost = [file for file in above if file.claims is None or best.state is None or file.claims != best.state.version]
    # The catalog's entry moves with every commit, so metadata beyond the file that it names was refused, or
    # staged by runs that broke off: it was never acknowledged.
    vouched = not lost and any(file.path == remains.current for file in above)
    tails = {} if vouched else dict(_tails(remains, best))
    notes = tuple(_left_out(above, lost))
    if not lost and not tails:
        notes = (*notes, *_missing(remains, "its segment cannot be read without it"), *_unnamed(remains, ()))
        return RepairPlan(Way.REGISTER, best, complete=not remains.missing, notes=notes)
    assert best.state is not None
    logs = tuple(_rebuilt(log, (*_named(remains, log), *tails.get(log.partition, ()))) for log in best.state.logs)
    taken = [segment for tail in tails.values() for segment in tail]
    notes = (
        *notes,
        *_missing(remains, _BACK),
        *_appended(taken),
        *_unnamed(remains, taken),
        *_forgotten(best.state.version),
    )
    notes = (*notes, *_no_replica(best.state, taken))
    whole = not lost and remains.missing_masks.issuperset(remains.missing)
    state = best.state
    return RepairPlan(Way.REBUILD, best, state.settings, state.own_settings, logs, whole, notes, state.origin)


def _check_only_one(files: Sequence[MetadataFile], best: MetadataFile) -> None:
    """Of two programs that commit at once one loses, and may leave its metadata: the files do not say which."""
    same = [file.path for file in files if file.whole and file.number == best.number]
    if len(same) > 1:
        raise RefusedError(
            f"{len(same)} metadata files are equally new, but only one of them was committed: {', '.join(same)}",
            hint="choose one with --metadata FILE; nothing was changed",
        )


def _tails(remains: Remains, best: MetadataFile) -> Iterator[tuple[int, tuple[Segment, ...]]]:
    """By partition, segments beyond the log's end that no commit has stopped naming."""
    assert best.state is not None
    for log in best.state.logs:
        mine = segments_of(remains.unnamed, log.partition)
        tail = tuple(s for s in mine if s.base_offset >= log.log_end_offset and s.path not in remains.closed)
        if tail:
            yield log.partition, tail


def _from_segments(remains: Remains) -> RepairPlan:
    """Without intact metadata: all segments that no commit has certainly stopped naming."""
    known = _known(remains)
    live, masks = with_masks(remains, (s for s in remains.unnamed if s.path not in remains.closed), known)
    if not live and known is None:
        raise RefusedError(
            f"{remains.location}: it cannot be restored: there is no metadata, no segment and no record of a version",
            hint="nothing was changed",
        )
    partitions = max([s.partition + 1 for s in live] + [len(known.logs) if known else 0])
    before = {log.partition: log for log in known.logs} if known else {}
    logs = tuple(_rebuilt(before.get(p, LogState(p)), segments_of(live, p)) for p in range(partitions))
    settings = known.settings if known else _settings_of(live)
    notes = [
        "no intact metadata is left: log ends, partitions without records and records appended to them are unknown",
        f"settings are taken from version {known.version}"
        if known
        else "settings are unknown: Kafka's defaults are used",
        "records that retention, delete-records, truncate or a round removed are back if their files still exist",
        *_missing(remains, _BACK),
        *masks,
        *_unnamed(remains, live),
        *_no_replica(known, live),
    ]
    own = known.own_settings if known else own_names(None, settings)
    origin = known.origin if known else OWN
    return RepairPlan(Way.REBUILD, None, settings, own, logs, complete=False, notes=tuple(notes), origin=origin)


def _settings_of(segments: Sequence[Segment]) -> TopicSettings:
    """Kafka's defaults; the segments themselves tell whether their records have message ids."""
    return TopicSettings(message_ids="pulsar" if any(s.envelopes is not None for s in segments) else "none")


def _known(remains: Remains) -> ClosedState | None:
    """The newest state that is known, whatever segments it had."""
    states = [file.state for file in remains.files if file.state is not None]
    known = [ClosedState(s.version, s.settings, s.logs, s.own_settings, s.origin, s.replica) for s in states]
    return max([*known, *([remains.last_closed] if remains.last_closed else [])], key=lambda k: k.version, default=None)


def _named(remains: Remains, log: LogState) -> Iterator[Segment]:
    """The log's segments; where retention has trimmed a backlog, also what only its view has."""
    yield from segments_of(remains.named, log.partition)
    yield from (s for s in segments_of(remains.view, log.partition) if s.base_offset < log.log_start_offset)


def _rebuilt(log: LogState, segments: tuple[Segment, ...]) -> RebuiltLog:
    """The log with these segments, none of them covered by a round."""
    segments = tuple(sorted(segments, key=lambda s: (s.base_offset, -s.end_offset)))
    if log.view is not None or not log.log_end_offset:  # a view extends below; of a new log nothing is known
        start = min([s.base_offset for s in segments], default=log.log_start_offset)
        start = max(start, log.deleted_below)
    else:
        start = log.log_start_offset
    segments = tuple(s for s in segments if s.end_offset > start)
    end = max([log.log_end_offset, start, *(s.end_offset for s in segments)])
    fresh = LogState(
        log.partition,
        log_start_offset=start,
        first_dirty_offset=start,
        log_end_offset=end,
        generation=log.generation,
        truncated=log.truncated,
        dirty=volume_of(segments),
        oldest_dirty_timestamp_ms=min((s.min_timestamp_ms for s in segments), default=None),
        deleted_below=min(log.deleted_below, start),
        compacted_below=end,  # what rounds had taken away is not known
        losers_removed=end > start,
        round_required="the topic was repaired",
        uncovered=True,
        # Without the chain of appends with keys: a run after it may have written segments that are taken (C75).
        batches=tuple(batch for batch in log.batches if batch.query_id != CHAIN_ID),
        copied_to=log.copied_to,
        source_epoch=log.source_epoch if end == log.log_end_offset else None,
        source_begun=begun_after_cut(log, end),
    )
    return RebuiltLog(fresh, segments)


def _left_out(above: Iterable[MetadataFile], lost: Sequence[MetadataFile]) -> Iterator[str]:
    for file in above:
        if file in lost:
            yield f"{file.path}: {file.problem}; only the segments of that commit are known"
        else:
            yield f"{file.path}: {file.problem}; it is omitted"
        yield from (f"omitted: {what}" for what in file.foreign)


def _missing(remains: Remains, without_mask: str) -> Iterator[str]:
    for path in remains.missing:
        if path in remains.missing_masks:
            yield f"{path}: the mask is missing, and {without_mask}"
        else:
            yield f"{path}: the file is missing, so its records are lost"
    yield from (f"{path}: the file is damaged and omitted" for path in remains.unreadable)


def _appended(taken: Iterable[Segment]) -> Iterator[str]:
    for s in taken:
        yield (
            f"{s.path}: offsets {s.base_offset} to {s.end_offset - 1} of partition {s.partition} are above the log "
            "end and are appended; they may not have been acknowledged"
        )


def _unnamed(remains: Remains, taken: Sequence[Segment]) -> Iterator[str]:
    paths = {s.path for s in taken}
    for s in remains.unnamed:
        if s.path not in paths:
            yield f"{s.path}: offsets {s.base_offset} to {s.end_offset - 1} of partition {s.partition} are omitted"


def _forgotten(version: int) -> Iterator[str]:
    yield f"versions before {version} are not retained, and cursors of readers are no longer valid"


def _no_replica(known: ClosedState | TopicState | None, live: Iterable[Segment]) -> Iterator[str]:
    """A rebuilt topic has no version of a source, so it is not a replica, whatever it was (C64)."""
    if known is not None and known.replica is not None:
        was = f"at version {known.version} it was a replica of the topic in {known.replica.source}"
    elif known is None and any(is_copy(segment.path) for segment in live):
        was = "it has files that were copied from another topic, so it may have been a replica"
    else:
        return
    yield (
        f"{was}; now it is a topic of its own and accepts appends: to replicate again, delete it, and the next copy "
        "recreates it"
    )


def clusters(segments: Sequence[Segment]) -> Iterator[tuple[Segment, ...]]:
    """Groups of overlapping segments; one that overlaps none is alone. In offset order."""
    together: list[Segment] = []
    for segment in segments:
        if together and segment.base_offset >= max(s.end_offset for s in together):
            yield tuple(together)
            together = []
        together.append(segment)
    if together:
        yield tuple(together)
