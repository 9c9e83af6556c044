"""Which files `verify` reads, and which proofs the records of each are part of.

proofs: before ─┐
        after  ─┼─► each segment once, with its part in every proof that its records can fail
newest version ─┘
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lithify.model.finding import TombstoneCount
from lithify.model.segment import Segment
from lithify.rules.proof.transition import Proof


@dataclass(frozen=True, slots=True)
class Membership:
    """A segment's part in one proof, by its number; `before` from an offset on, `after` whole."""

    proof: int
    before: bool
    after: bool
    from_offset: int = 0


@dataclass(frozen=True, slots=True)
class InspectedSegment:
    """A file to check, the proofs that its records are part of, and what to count in it."""

    segment: Segment
    memberships: tuple[Membership, ...]
    count: TombstoneCount | None = None


def inspected(
    proofs: Sequence[Proof], current: Sequence[Segment], counts: Mapping[str, TombstoneCount]
) -> tuple[InspectedSegment, ...]:
    """Every segment of the proofs and of the newest version once; `counts` identifies them by their ids."""
    segments = {segment.id: segment for segment in current}
    members: dict[str, dict[int, Membership]] = {}
    for number, proof in enumerate(proofs):
        for membership, segment in _memberships(number, proof):
            segments[segment.id] = segment
            known = members.setdefault(segment.id, {}).get(number)
            members[segment.id][number] = membership if known is None else _both(known, membership)
    return tuple(
        InspectedSegment(segment, tuple(_that_matter(segment, members.get(one, {}), proofs)), counts.get(one))
        for one, segment in segments.items()
    )


def _memberships(number: int, proof: Proof) -> Iterator[tuple[Membership, Segment]]:
    for source in proof.before:
        yield Membership(number, before=True, after=False, from_offset=source.from_offset), source.segment
    for segment in proof.after:
        yield Membership(number, before=False, after=True), segment


def _both(one: Membership, other: Membership) -> Membership:
    starts = [m.from_offset for m in (one, other) if m.before]
    return Membership(one.proof, bool(starts), one.after or other.after, min(starts, default=0))


def _that_matter(segment: Segment, members: Mapping[int, Membership], proofs: Sequence[Proof]) -> Iterator[Membership]:
    """Memberships without those whose records cannot be wrong, to save comparing them."""
    for member in members.values():
        proof = proofs[member.proof]
        kept = member.before and member.after and member.from_offset <= segment.base_offset
        appended = not member.before and segment.base_offset >= proof.known_up_to
        by_offset = proof.rules is None or not proof.rules.is_ordered
        if appended or (kept and by_offset and segment.base_offset >= proof.horizon):
            continue
        yield member
