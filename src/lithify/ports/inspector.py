"""What `verify` needs from the world: somebody who reads whole files and compares records.

    service/verify ──► Inspector   every record of the files, judged by the comparisons they are part of

The port of the store is in `ports/store.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lithify.model.segment import Segment
from lithify.ports.engine import Progress
from lithify.proof.comparison import Comparison
from lithify.reports.verification import Finding, FindingKind, TombstoneCount


@dataclass(frozen=True, slots=True)
class Membership:
    """A segment's part in one comparison, by its number; `before` from an offset on, `after` whole."""

    comparison: int
    before: bool
    after: bool
    from_offset: int = 0


@dataclass(frozen=True, slots=True)
class InspectedSegment:
    """A file to check, the comparisons that its records are part of, and what to count in it."""

    segment: Segment
    memberships: tuple[Membership, ...]
    count: TombstoneCount | None = None


@dataclass(frozen=True, slots=True)
class RecordFinding:
    """What is wrong with the record at an offset, found by the comparison of that number."""

    comparison: int
    offset: int
    kind: FindingKind


@dataclass(frozen=True, slots=True)
class InspectionResult:
    """What reading all of them showed: about files, about single records, and the tombstones counted.

    `tombstones` has by partition a number for each step, and one for what lies behind the last.
    """

    files: tuple[Finding, ...]
    records: tuple[RecordFinding, ...]
    tombstones: Mapping[int, tuple[int, ...]]


class Inspector(Protocol):
    """Reads files whole and compares what is in them, record by record."""

    def inspect(
        self,
        segments: Sequence[InspectedSegment],
        comparisons: Sequence[Comparison],
        most: int,
        progress: Progress,
    ) -> InspectionResult:
        """At most `most + 1` findings about records, so that the caller can tell whether there were more."""
        ...


def inspected(
    comparisons: Sequence[Comparison], current: Sequence[Segment], counts: Mapping[str, TombstoneCount]
) -> tuple[InspectedSegment, ...]:
    """Every file of the comparisons and of the newest version once; `counts` goes by path."""
    segments = {segment.path: segment for segment in current}
    members: dict[str, dict[int, Membership]] = {}
    for number, comparison in enumerate(comparisons):
        for found, segment in _memberships(number, comparison):
            segments[segment.path] = segment
            known = members.setdefault(segment.path, {}).get(number)
            members[segment.path][number] = found if known is None else _both(known, found)
    return tuple(
        InspectedSegment(segment, tuple(_that_matter(segment, members.get(path, {}), comparisons)), counts.get(path))
        for path, segment in segments.items()
    )


def _memberships(number: int, comparison: Comparison) -> Iterator[tuple[Membership, Segment]]:
    for source in comparison.before:
        yield Membership(number, before=True, after=False, from_offset=source.from_offset), source.segment
    for segment in comparison.after:
        yield Membership(number, before=False, after=True), segment


def _both(one: Membership, other: Membership) -> Membership:
    starts = [m.from_offset for m in (one, other) if m.before]
    return Membership(one.comparison, bool(starts), one.after or other.after, min(starts, default=0))


def _that_matter(
    segment: Segment, members: Mapping[int, Membership], comparisons: Sequence[Comparison]
) -> Iterator[Membership]:
    """Memberships without those whose records can only be found right, so that nobody compares them."""
    for member in members.values():
        comparison = comparisons[member.comparison]
        kept = member.before and member.after and member.from_offset <= segment.base_offset
        appended = not member.before and segment.base_offset >= comparison.known_up_to
        by_offset = comparison.rules is None or comparison.rules.strategy == "offset"
        if appended or (kept and by_offset and segment.base_offset >= comparison.horizon):
            continue
        yield member
