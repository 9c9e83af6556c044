"""The logs of `just bench`: one of an ordinary shape, and others that differ from it in one thing each.

A case is a log that no round has compacted yet, or one that is compacted up to where some new records begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from keyed_segments import Shape, keyed_segments
from lithify.model.segment import Segment

BASE = "base"
VALUE_BYTES = 200


@dataclass(frozen=True, slots=True)
class Log:
    """The segments of a case on disk: of the compacted part, and of the rest."""

    clean: tuple[Segment, ...]
    dirty: tuple[Segment, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.clean + self.dirty

    @property
    def paths(self) -> list[str]:
        return [segment.path for segment in self.segments]


@dataclass(frozen=True, slots=True)
class Case:
    """`clean` is the shape of the compacted part, in which each key comes once, if there is one."""

    name: str
    text: str
    dirty: Shape
    clean: Shape | None = None

    def log(self, folder: Path) -> Log:
        """Its segments below `folder`, made the first time."""
        parts = [() if shape is None else _made(folder, shape) for shape in (self.clean, self.dirty)]
        return Log(*parts)

    @property
    def records(self) -> int:
        return self.dirty.records + (self.clean.records if self.clean else 0)


def cases(records: int) -> tuple[Case, ...]:
    """All of them; `records` is the size of the base, in a segment per million and at least four."""
    return tuple(_cases(records))


def _cases(records: int) -> Iterator[Case]:
    segments = max(4, records // 1_000_000)
    base = Shape(records, records // 5, segments, VALUE_BYTES, 0.02)

    def differing(name: str, text: str, **what: object) -> Case:
        return Case(name, text, replace(base, **what))  # type: ignore[arg-type]

    yield Case(BASE, "uniform keys of 16 bytes, 20 % distinct, values of 200 bytes, 2 % tombstones", base)
    yield differing("zipf", "few keys have most records", chosen="zipf")
    yield differing("time-ordered", "most records are of keys that came shortly before", chosen="time")
    yield differing("uuid", "keys are UUIDs as text, 36 bytes", written="uuid")
    yield differing("long-keys", "keys of 100 bytes", written="long")
    yield differing("50B", "values of 50 bytes", value_bytes=50)
    tenth = {"records": records // 10, "keys": records // 50}
    yield differing("2KB", "values of 2,000 bytes, a tenth of the records", value_bytes=2000, **tenth)
    yield differing("1%-distinct", "100 records a key", keys=max(1, records // 100))
    yield differing("80%-distinct", "", keys=int(2.15 * records))
    yield differing("100%-distinct", "nothing is superseded", keys=records, distinct=True)
    yield differing("tombstones", "every third record is a delete", tombstones=0.33)
    live = records // 5
    clean = replace(base, records=live, keys=live, segments=max(1, segments // 5), distinct=True, tombstones=0.0)
    for percent, name in ((1, "1%-new"), (0.1, "0.1%-new")):
        new = Shape(max(1, int(live * percent / 100)), live, 1, VALUE_BYTES, 0.02, first_offset=clean.stored_records)
        yield Case(name, f"{percent:g} % of new records over all keys of a compacted log", new, clean)


def _made(folder: Path, shape: Shape) -> tuple[Segment, ...]:
    place = folder / shape.name
    place.mkdir(parents=True, exist_ok=True)
    return keyed_segments(place.resolve(), shape)
