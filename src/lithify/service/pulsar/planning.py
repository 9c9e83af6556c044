"""Plans a round of one partition: which entries it reads, up to where. Pure.

    ledgers     [ 5: trimmed ] [ 9: 0 .. 99 ] [ 12: 0 .. 49 ]      last entry: 12:49
    view        ├─ entries up to the horizon 9:20 ─┤
    ranges      ╰ the view, as one ╯╰ 9:21 .. 9:99 ╯╰ 12:0 .. 12:49 ╯

The view has what is before the first entry that is read from the topic itself. That is the one after the horizon,
or the first that the topic still has, where the ledger of the horizon was trimmed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from lithify.errors import BrokerError, DamagedError
from lithify.model.message import MessageId
from lithify.ports.pulsar.pulsar_cluster import TopicLedger, TopicLook
from lithify.ports.pulsar.views import EntryRange, PlannedView, ServedView

RANGE_BYTES = 32 * 2**20
"""Entries of this number of bytes are read by one task."""

SMALL_ENTRY_BYTES = 4096
MANY_ENTRIES = 50_000
"""So many entries of less bytes on average are read from bookies, past the broker, in larger ranges."""

SMALL_RANGE_BYTES = 128 * 2**20

MOST_RANGES = 4096
"""Of one partition; ranges get larger instead."""


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """A round of one partition. Nothing is to be done if `view` is None."""

    look: TopicLook
    view: PlannedView | None
    view_entries: int = 0
    new_entries: int = 0

    @property
    def read_bytes(self) -> int:
        """Upper bound: new entries are read twice, and the view too unless the new ones are few."""
        return 0 if self.view is None else 2 * sum(one.size_bytes for one in self.view.ranges)

    @property
    def written_bytes(self) -> int:
        """Upper bound: all remains, in a frame each."""
        if self.view is None:
            return 0
        return sum(one.size_bytes for one in self.view.ranges) + FRAME_BYTES * (self.view_entries + self.new_entries)


FRAME_BYTES = 64
"""At most around an entry of a view."""


def plan_round(partition: str, look: TopicLook) -> RoundPlan:
    """Raises `DamagedError` if the broker cannot read the view, `BrokerError` if what it says is contradictory."""
    if look.view is not None and look.served is not None and look.served.ledger != look.view:
        raise BrokerError(
            f"{partition}: the broker serves compacted ledger {look.served.ledger}, but its cursor has {look.view}",
            hint="run it again, and if it fails again, unload the topic: a compaction is ending or has failed",
        )
    if look.view is not None and look.served is None:
        raise DamagedError(
            f"{partition}: the broker cannot read its compacted ledger {look.view}",
            hint="drop it with `lithify pulsar uncompact`: its readers fail as well",
        )
    horizon = look.horizon if look.view is not None else None
    if look.last is None or (horizon is not None and look.last[:2] <= horizon[:2]):
        return RoundPlan(look, None)
    end = MessageId(look.last.ledger, look.last.entry)
    start = _first_new(look, horizon)
    new = [*_new_ledgers(look.ledgers, start, end)]
    if end.ledger > max((one.ledger for one in look.ledgers), default=-1):
        raise BrokerError(
            f"{partition}: the broker does not list ledger {end.ledger}, which has the last entry",
            hint="run it again; nothing was changed",
        )
    if not new:  # what was new is trimmed
        return RoundPlan(look, None)
    new_entries = sum(piece.entries for piece in new)
    served = look.served if look.view is not None else None
    entries, size = (0, 0) if served is None else (served.entries, served.size_bytes)
    whole = entries + new_entries
    small = whole >= MANY_ENTRIES and size + sum(piece.size_bytes for piece in new) < SMALL_ENTRY_BYTES * whole
    ranges = [*_cut(new, SMALL_RANGE_BYTES if small else RANGE_BYTES)]
    if served is not None and entries:
        ranges.insert(0, EntryRange(None, _before(start), size, ServedView(served.ledger, entries)))
    return RoundPlan(look, PlannedView(partition, tuple(ranges), end, small), entries, new_entries)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Entries of one ledger, both inclusive."""

    ledger: int
    first: int
    last: int
    size_bytes: int

    @property
    def entries(self) -> int:
        return self.last - self.first + 1


def _first_new(look: TopicLook, horizon: MessageId | None) -> MessageId:
    if horizon is None:
        return MessageId(look.ledgers[0].ledger, 0)
    here = any(one.ledger == horizon.ledger for one in look.ledgers)
    later = [one.ledger for one in look.ledgers if one.ledger > horizon.ledger]
    return MessageId(later[0], 0) if later and not here else MessageId(horizon.ledger, horizon.entry + 1)


def _before(start: MessageId) -> MessageId:
    """The last id below one."""
    return MessageId(start.ledger, start.entry - 1) if start.entry else MessageId(start.ledger - 1, _LAST_ENTRY)


_LAST_ENTRY = 2**62


def _new_ledgers(ledgers: tuple[TopicLedger, ...], start: MessageId, end: MessageId) -> Iterator[_Piece]:
    for one in ledgers:
        if not start.ledger <= one.ledger <= end.ledger:
            continue
        first = start.entry if one.ledger == start.ledger else 0
        last = end.entry if one.ledger == end.ledger else one.entries - 1
        if first <= last:
            per_entry = one.size_bytes / max(1, one.entries)
            yield _Piece(one.ledger, first, last, int(per_entry * (last - first + 1)))


def _cut(pieces: list[_Piece], range_bytes: int) -> Iterator[EntryRange]:
    """Ranges of about this number of bytes each, over several ledgers if these are small."""
    full = max(range_bytes, -(-sum(piece.size_bytes for piece in pieces) // MOST_RANGES))
    pending: EntryRange | None = None
    for one in _parts(pieces, full):
        if pending is not None and pending.size_bytes + one.size_bytes <= full:
            pending = EntryRange(pending.start, one.end, pending.size_bytes + one.size_bytes)
            continue
        if pending is not None:
            yield pending
        pending = one
    if pending is not None:
        yield pending


def _parts(pieces: list[_Piece], full: int) -> Iterator[EntryRange]:
    for piece in pieces:
        parts = max(1, min(-(-piece.size_bytes // full), piece.entries))
        cuts = [piece.first + piece.entries * part // parts for part in range(parts + 1)]
        for first, after in pairwise(cuts):
            size = piece.size_bytes * (after - first) // piece.entries
            yield EntryRange(MessageId(piece.ledger, first), MessageId(piece.ledger, after - 1), size)
