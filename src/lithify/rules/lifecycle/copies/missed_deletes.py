"""Whether a reader of a compacted source may have missed deletes that the source's cleaner dropped (C71).

    known ends   (o1, t1)      (o2, t2)
    reader           q ────────────► r           from the newest end at or below q: nothing that it reads was
                                                 dropped before t1 + delete.retention.ms

Kafka's cleaner drops a tombstone no earlier than `delete.retention.ms` after it has first cleaned the part of the log
that the tombstone is in, and it cleans only what is stable. So if the stable end was `o1` at `t1`, every delete from
there on remains until `t1 + delete.retention.ms`. A reader that begins at the log's start, before it reads, is at such
an end as well: that is Kafka's promise to every consumer. What was read after that time may lack deletes.

All times come from one clock, read before the request to the source. `margin_ms` is for what separates that clock from
Kafka's: the difference between machines that ingest in turn, steps, and the time that a cleaning takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lithify.errors import PolicyError, SourceLostError
from lithify.model.names import LogId, TopicName
from lithify.model.settings.units import format_duration, format_time, plural
from lithify.model.sources.ends import Ends, KnownEnds, SourceEnd, StableEnds
from lithify.model.topic.log import LogState

ENDS_KEPT = 32
"""Known ends of one log: a reader that is behind needs some that are ahead of it, and older ones are of no use."""
LEAST_LOOK_MS, MOST_LOOK_MS = 1_000, 3_600_000
"""The bounds of the interval at which an ingest with nothing to copy requests the ends."""
COMPACTED = "compact"
"""The only `cleanup.policy` with which nothing but its deletion takes a key out of a topic."""
NO_RESYNC = (
    "ingest it without --resync; if deletes may be missing, continue without them with --accept-loss, which stores "
    "the range, or copy the topic again with --into"
)


@dataclass(frozen=True, slots=True)
class MissedDeletes:
    """Deletes in [start_offset, end_offset) may be missing; the reader had read to the end at `since_ms`, if known.

    `is_begin` if it had read nothing then, and began.
    """

    start_offset: int
    end_offset: int
    since_ms: int | None
    retention_ms: int
    is_begin: bool = False


def margin_ms(retention_ms: int) -> int:
    """How much sooner than `delete.retention.ms` a reader must be."""
    return retention_ms // 10


def look_interval_ms(retention_ms: int | None) -> int:
    """How often to request the ends, so that what is known is never much older than necessary."""
    return MOST_LOOK_MS if retention_ms is None else min(MOST_LOOK_MS, max(LEAST_LOOK_MS, retention_ms // 20))


def missed_deletes(
    known: KnownEnds, start: int, end: int, now_ms: int, retention_ms: int | None
) -> MissedDeletes | None:
    """What may be missing in what was read of [start, end) up to `now_ms`, or would be read now; None: nothing.

    `retention_ms` is the source's now. What was accepted as missed before is not told again.
    """
    start = _behind(known, start)
    if start >= end:
        return None
    begin = known.begun and _with_retention(known.begun, retention_ms)
    ends = [*(_with_retention(e, retention_ms) for e in known.ends), *([begin] if begin else [])]
    below = [e for e in ends if e.offset <= start and not _is_ahead(e, now_ms)]
    since = max(below, key=lambda e: e.time_ms, default=None)
    kept_ms = (ends[0] if ends else SourceEnd(0, 0, retention_ms)).retention_ms if since is None else since.retention_ms
    if kept_ms is None or (since is not None and now_ms - since.time_ms < kept_ms - margin_ms(kept_ms)):
        return None
    is_begin = since is not None and since is begin
    return MissedDeletes(start, end, None if since is None else since.time_ms, kept_ms, is_begin)


def learned(known: KnownEnds, end: SourceEnd, read_to: int) -> KnownEnds:
    """`known` once the source was seen to end there, as a reader needs it that has read to `read_to`."""
    earlier = (_with_retention(e, end.retention_ms) for e in known.ends if e.offset < end.offset)
    ends = [*(e for e in earlier if not _is_ahead(e, end.time_ms)), end]
    begun = None if known.begun is None else _with_retention(known.begun, end.retention_ms)
    return needed(replace(known, ends=tuple(ends), begun=begun), read_to)


def needed(known: KnownEnds, read_to: int) -> KnownEnds:
    """`known` without what a reader that has read to `read_to` needs no more, and with a bounded number of ends."""
    passed = sum(e.offset <= read_to for e in known.ends)
    ends = list(known.ends[max(0, passed - 1) :])
    while len(ends) > ENDS_KEPT:  # the one whose neighbours are nearest to each other in time
        least_needed = min(range(1, len(ends) - 1), key=lambda i: ends[i + 1].time_ms - ends[i - 1].time_ms)
        del ends[least_needed]
    return replace(known, ends=tuple(ends))


def together(one: KnownEnds, other: KnownEnds) -> KnownEnds:
    """What two readers of one log know."""
    newest: dict[int, SourceEnd] = {}
    for end in sorted({*one.ends, *other.ends}, key=lambda e: e.time_ms):
        newest = {offset: e for offset, e in newest.items() if offset < end.offset} | {end.offset: end}
    missed = tuple(sorted({*one.missed, *other.missed}))
    return needed(KnownEnds(tuple(newest.values()), missed), 0)


def all_learned(known: Ends, now: StableEnds, time_ms: int, read_to: Mapping[int, int]) -> dict[int, KnownEnds]:
    """`learned` of every log that the source has; `read_to` has how far the reader is, if it has begun."""
    return {**known} | {
        p: learned(known.get(p, KnownEnds()), SourceEnd(end, time_ms, now.retention_ms), read_to.get(p, 0))
        for p, end in now.ends.items()
    }


def seen(known: Ends, retention_ms: int | None) -> dict[int, KnownEnds]:
    """`known` once the source was seen with that `delete.retention.ms`, even if nothing else is learned of it."""

    def counted(end: SourceEnd) -> SourceEnd:
        return _with_retention(end, retention_ms)

    return {
        p: replace(log, ends=tuple(map(counted, log.ends)), begun=log.begun and counted(log.begun))
        for p, log in known.items()
    }


def begun(known: KnownEnds, start: int, time_ms: int, retention_ms: int | None) -> KnownEnds:
    """`known` of a reader that has nothing yet, and reads from the log's start on from then on."""
    return replace(known, ends=(), begun=SourceEnd(start, time_ms, retention_ms))


def begun_at(known: KnownEnds, at: tuple[int, int] | None) -> KnownEnds:
    """`known` of a reader that began there, at that time: the smallest `delete.retention.ms` of its ends is its own."""
    if at is None:
        return known
    retentions_ms = [end.retention_ms for end in known.ends if end.retention_ms is not None]
    return replace(known, begun=SourceEnd(*at, min(retentions_ms, default=None)))


def begun_after_cut(log: LogState, end: int) -> tuple[int, int] | None:
    """Where the copy began, once the log ends at `end`; None if that tells nothing any more.

    A resync begins above what was copied before, and its deletes, or some of them, are cut off then.
    """
    begun = log.source_begun
    cut_off = begun is not None and log.log_start_offset < begun[0] and end < log.log_end_offset
    return None if cut_off else begun


def of_reader(known: KnownEnds) -> KnownEnds:
    """`known` as one reader alone keeps it, with where it began among the ends."""
    if known.begun is None:
        return known
    return replace(together(replace(known, begun=None), KnownEnds((known.begun,))), begun=None)


def accepted(known: KnownEnds, missed: MissedDeletes, end: int) -> KnownEnds:
    """`known` once it was accepted that deletes from there up to the source's `end` may be missing."""
    start = missed.start_offset
    others = [gap for gap in known.missed if gap[1] < start or gap[0] > end]
    touching = [gap for gap in known.missed if not (gap[1] < start or gap[0] > end)]
    whole = (min([start, *(gap[0] for gap in touching)]), max([end, *(gap[1] for gap in touching)]))
    return replace(known, missed=tuple(sorted([*others, whole])))


def lost_error(log: LogId, theirs: str, missed: MissedDeletes, now_ms: int, hint: str) -> SourceLostError:
    """The error for a reader of `log` that may have missed deletes of `theirs`, a topic of Kafka."""
    since, kept = missed.since_ms, format_duration(missed.retention_ms)
    when = (
        "it is not known when" if since is None else f"at {format_time(since)}, {format_duration(now_ms - since)} ago,"
    )
    what = f"this read of {theirs} began" if missed.is_begin else f"{theirs} was last read to its end"
    return SourceLostError(
        f"{log}: deletes from offset {missed.start_offset} on may be missing: {when} {what}, and its "
        f"delete.retention.ms is {kept}",
        hint=hint,
    )


def no_room(log: LogId, keys: int, room: int, between: tuple[int, int]) -> PolicyError:
    """The error for a copy in which this number of deletes find no offsets that Kafka gives to no record."""
    start, end = between
    return PolicyError(
        f"{log}: Kafka no longer has {plural(keys, 'key')} of the copy, and has left {plural(room, 'offset')} free "
        f"for deletes between the end of the copy, {start}, and its own, {end}",
        hint="copy the topic again with --into, because --accept-loss skipped deletes or records expired; nothing was "
        "copied",
    )


def check_resync(name: TopicName, theirs: str, now: StableEnds, oldest: Mapping[int, int]) -> None:
    """Raises `PolicyError` where a key may be missing in Kafka's topic `theirs` for another reason than its deletion.

    `oldest` has by partition the first offset of the records that the copy has. Kafka's cleaner never moves a log
    start: only retention and `delete-records` do, which take records of live keys, too.
    """
    if not oldest:
        return
    if now.policy is None:
        raise PolicyError(
            f"{name}: the cleanup.policy of {theirs} cannot be read, so its records may expire, and a resync would "
            "delete their keys from the copy",
            hint="grant this user DescribeConfigs on the topic, or continue without the deletes with --accept-loss in "
            "place of --resync, which stores the range",
        )
    if now.policy != COMPACTED:
        raise PolicyError(
            f"{name}: {theirs} has cleanup.policy={now.policy}, so its records may expire, and a resync would "
            "delete their keys from the copy",
            hint=NO_RESYNC,
        )
    for partition, first in sorted(oldest.items()):
        start = now.starts.get(partition, 0)
        if first < start:
            raise PolicyError(
                f"{LogId(name, partition)}: {theirs} begins at offset {start}, but the copy has records from offset "
                f"{first} on: records below {start} expired or were deleted by their offset, and a resync would "
                "delete their keys from the copy",
                hint=NO_RESYNC,
            )


def _with_retention(end: SourceEnd, retention_ms: int | None) -> SourceEnd:
    """`end` with the smallest `delete.retention.ms` since; a topic that is not compacted has None."""
    seen = [ms for ms in (end.retention_ms, retention_ms) if ms is not None]
    return end._replace(retention_ms=min(seen, default=None))


def _is_ahead(end: SourceEnd, now_ms: int) -> bool:
    """Whether its time is from a clock that was wrong, or the clock is wrong now."""
    return end.time_ms > now_ms + margin_ms(end.retention_ms or 0)


def _behind(known: KnownEnds, start: int) -> int:
    """`start`, or the end of what was accepted as missed there."""
    return next((end for begin, end in known.missed if begin <= start < end), start)
