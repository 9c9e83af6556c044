"""Medians, and ratios of pairs, of what ways took in turns on the same log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

OURS = "lithify"
COMPARED = ("seconds", "cpu_s")

Row = Mapping[str, Any]
"""The figures of one turn of a way on a case."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The medians of a way on a case, and of ours to its, pair by pair: `{"seconds": 0.5}` is half its time."""

    case: str
    way: str
    turns: int
    medians: Mapping[str, float]
    ratios: Mapping[str, float]
    peak_bytes: Mapping[str, int]
    """By role, the most of all turns."""


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """Of each way on each case, in the order in which they come first."""
    return [_summary(rows, case, way) for case, way in _pairs(rows)]


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    cases = list(dict.fromkeys(row["case"] for row in rows))
    ways = list(dict.fromkeys(row["way"] for row in rows))
    there = {(row["case"], row["way"]) for row in rows}
    yield from ((case, way) for case in cases for way in ways if (case, way) in there)


def _summary(rows: Sequence[Row], case: str, way: str) -> Summary:
    theirs = {row["turn"]: row for row in rows if (row["case"], row["way"]) == (case, way)}
    ours = {row["turn"]: row for row in rows if (row["case"], row["way"]) == (case, OURS)}
    numbers = {name for row in theirs.values() for name, value in row.items() if isinstance(value, int | float)}
    ratios = {}
    for name in COMPARED:
        pairs = [ours[turn][name] / max(theirs[turn][name], 1e-9) for turn in ours.keys() & theirs.keys()]
        if pairs:
            ratios[name] = median(pairs)
    peaks: dict[str, int] = {}
    for row in theirs.values():
        for role, peak in row["peak_bytes"].items():
            peaks[role] = max(peak, peaks.get(role, 0))
    return Summary(
        case=case,
        way=way,
        turns=len(theirs),
        medians={name: median(row[name] for row in theirs.values() if name in row) for name in numbers - {"turn"}},
        ratios=ratios,
        peak_bytes=peaks,
    )
