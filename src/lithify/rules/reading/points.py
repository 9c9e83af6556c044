"""At which points a version of a log still has what was in it then: reads as of an offset (C69).

    in place       S ── compacted ── D ═══════════ E      rounds removed records below D that counted before D
    never rounded  S ════════════════════════════ E      nothing was removed: every offset
    side by side   S ══════════════ D ═══════════ E      the backlog has everything, until it is trimmed
                   view ··········· D ═══════════ E

At an offset on a double line, the latest records of all keys below that offset are the same as in the whole history:
what a round removes has lost to a record below D. Records that retention, `delete-records` or a truncation have removed
are in the log at no point.

    in place       S ── compacted ── D ──────────── E     below D it was cut at N: only an earlier version has the
                          N = D ╞═══════ E                values that the records from N on had superseded
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.reading.pieces import Reading

PLAIN, COMPACTED = Reading(), Reading(compacted=True)


@dataclass(frozen=True, slots=True)
class Points:
    """Every offset in [first, last], read in this way. `whole`: rounds have removed nothing that is read."""

    first: int
    last: int
    how: Reading
    whole: bool


def points_of(state: TopicState, partition: int, newest: TopicState, *, compacted: bool) -> Iterator[Points]:
    """The points that a version of a log covers, for readers of compacted data or of the backlog alone.

    Offsets from which the log was truncated since, up to `newest`, are other records now, and so covered by none.
    """
    log = state.log(partition)
    last = min([log.log_end_offset, *_cuts_since(log, newest.log(partition))])
    by_order = state.settings.order is not None  # then a dropped delete would have beaten later records
    if (not compacted or log.log_start_offset <= log.compacted_start) and not (by_order and _lacks_deletes(log, PLAIN)):
        yield from _up_to(last, _first_plain(log), PLAIN, whole=not log.losers_removed)
    if compacted and log.view is not None and not (by_order and _lacks_deletes(log, COMPACTED)):
        whole = not (log.losers_removed or log.view.losers_removed)
        yield from _up_to(last, _first_compacted(log), COMPACTED, whole=whole)


def _up_to(last: int, first: int, how: Reading, *, whole: bool) -> Iterator[Points]:
    if first <= last:
        yield Points(first, last, how, whole)


def _first_plain(log: LogState) -> int:
    if not log.losers_removed:
        return log.log_start_offset
    reached = log.compacted_below if log.view is not None else max(log.first_dirty_offset, log.compacted_below)
    return _covered_from(log, log.log_start_offset, reached)


def _covered_from(log: LogState, start: int, reached: int) -> int:
    """The first covered offset of a log that is read from `start`.

    Rounds have compacted it up to `reached`, or beyond before it was truncated to there: then values that the truncated
    records had superseded still counted at that offset.
    """
    if reached <= start:
        return start
    lost = any(dropped.restored and not dropped.of_view and dropped.below > reached for dropped in log.dropped)
    is_cut = reached in log.truncated or log.generation > len(log.truncated)
    return reached + 1 if lost and is_cut else reached


def _first_compacted(log: LogState) -> int:
    assert log.view is not None
    first = _covered_from(log, log.compacted_start, log.compacted_below if log.losers_removed else 0)
    if not log.view.losers_removed:
        return first
    restored = (dropped.below for dropped in log.dropped if dropped.restored)  # its D was higher before a truncation
    return max(first, log.first_dirty_offset, *restored)


def _lacks_deletes(log: LogState, how: Reading) -> bool:
    return any(not dropped.restored and (how.compacted or not dropped.of_view) for dropped in log.dropped)


def _cuts_since(log: LogState, newest: LogState) -> tuple[int, ...]:
    missed = newest.generation - log.generation
    if missed > len(newest.truncated):
        return (-1,)  # cut too often to know where
    return newest.truncated[-missed:] if missed > 0 else ()
