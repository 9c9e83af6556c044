"""Which files of a partition's folder are its segments, even if a broker died while it was cleaning.

    00000000000000000000.log             a segment, by its base offset
    00000000000000000000.log.cleaned     a cleaner was writing it: nothing of it counts
    00000000000000000000.log.swap        cleaned, and on the disk: it takes the place of the segments that it covers
    00000000000000000000.log.deleted     replaced, or expired

A broker that starts does the same with the files (`LogLoader`): a swap counts if no file was still being cleaned at or
before it, as the swaps of one cleaning are complete only together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"([0-9]{20})\.log(\.cleaned|\.swap)?")
OFFSETS = 2**63 - 1
"""How many there are."""
_OFFSETS_OF_A_SEGMENT = 2**31
"""Indexes have 32 bits for an offset. Only of the last segment: older cleaners have written others with more."""


@dataclass(frozen=True, slots=True)
class SegmentNames:
    """The files of one folder, each by its base offset."""

    segments: Mapping[int, str]
    swaps: Mapping[int, str]
    """Those that count."""


def segment_names(names: Iterable[str]) -> SegmentNames:
    """The files with records among all of a folder."""
    found: dict[str | None, dict[int, str]] = {None: {}, ".swap": {}, ".cleaned": {}}
    for name in names:
        if (match := _NAME.fullmatch(name)) and int(match[1]) < OFFSETS:
            found[match[2]][int(match[1])] = name
    begun = min(found[".cleaned"], default=None)
    swaps = {base: name for base, name in found[".swap"].items() if begun is None or base < begun}
    return SegmentNames(_in_order(found[None]), _in_order(swaps))


def in_place(names: SegmentNames, ends: Mapping[int, int]) -> Mapping[int, str]:
    """The segments of a log, by base offset, once each swap is in the place of those that it covers.

    `ends` are the swaps' ends, by base offset: each covers all that begins at or after it, and before its end.
    """
    covered = {old for old in names.segments for base in names.swaps if base <= old < max(ends[base], base + 1)}
    left = {base: name for base, name in names.segments.items() if base not in covered}
    return _in_order({**left, **names.swaps})


def offsets_of(bases: Sequence[int]) -> Sequence[range]:
    """Of segments by their base offsets, in order, the offsets that each can have."""
    ends = [*bases[1:], min(bases[-1] + _OFFSETS_OF_A_SEGMENT, OFFSETS)] if bases else []
    return [range(base, end) for base, end in zip(bases, ends, strict=True)]


def _in_order(files: Mapping[int, str]) -> Mapping[int, str]:
    return dict(sorted(files.items()))
