"""Which offset of the target each offset of the lake has, as far as it is kept: exact, or never too late.

    lake    10 11 12 .. .. 15 .. 17 18        a run: records with consecutive offsets in both
    target   0  1  2        3     5  6        (4 is the marker of a transaction)
            [   run    ][ run ][ run ]        a run also covers the offsets before it that have no record

Each transaction stores the map with the cursor, so it is bounded: if there are too many runs, some are dropped, the
more the farther they are from the end. A position in a dropped run is translated to the end of the run before it. A
group then reads records again, at most about as many as it had left to read, and never skips one. MirrorMaker 2 keeps
its offset syncs in the same way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index

LARGEST_CHARS = 3_000
"""The most of the stored map: with the cursor it is below Kafka's default `offset.metadata.max.bytes` of 4096."""
LEAST_RUN_CHARS = len("0,0,0,1,")
PER_OCTAVE = (16, 8, 4, 2, 1)
"""Of runs whose distances from the end are within a factor of two, the first of these numbers that fits is kept."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive records, the first at `start` in the lake and `target` there; in [since, start) there is none."""

    since: int
    start: int
    target: int
    records: int

    @property
    def end(self) -> int:
        return self.start + self.records

    @property
    def target_end(self) -> int:
        return self.target + self.records


@dataclass(frozen=True, slots=True)
class Translation:
    """The target's offset for a position. At most `again` offsets before the right one; 0: it is that one."""

    offset: int
    again: int


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """Of one partition. `since`: no record from there on is in the target, which ends at `end`."""

    runs: tuple[Run, ...] = ()
    since: int = 0
    end: int = 0

    def translate(self, offset: int) -> Translation:
        """Where a group continues in the target that has read everything below `offset` of the lake."""
        after = bisect_right(self.runs, offset, key=lambda run: run.end)
        until = self.runs[after] if after < len(self.runs) else Run(self.since, self.since, self.end, 0)
        if offset >= until.since:
            within = max(0, offset - until.start) if until.records else 0
            return Translation(until.target + within, 0)
        read = self.runs[after - 1].target_end if after else 0
        return Translation(read, until.target - read)

    def with_records(self, pairs: Iterable[tuple[int, int]]) -> OffsetMap:
        """With the offsets in lake and target of the records that were published next, in order."""
        runs, since, end = list[list[int]](), self.since, self.end
        for offset, target in pairs:
            if runs and offset == since and target == end:
                runs[-1][3] += 1
            else:
                runs.append([since, offset, target, 1])
            since, end = offset + 1, target + 1
        return OffsetMap((*self.runs, *(Run(*run) for run in runs)), since, end)

    def bounded(self, exact_at: Sequence[int] = (), largest_chars: int = LARGEST_CHARS) -> OffsetMap:
        """A map in this number of characters, which remains exact at the offsets `exact_at` if there is room."""
        if self._fits(largest_chars):
            return self
        pinned = {run for offset in exact_at if (run := self._covering(offset)) is not None}
        thinned = self
        for per_octave, kept in (*((number, pinned) for number in PER_OCTAVE), (1, set[Run]())):
            thinned = OffsetMap(thinned._thinned(per_octave, kept), self.since, self.end)
            if thinned._fits(largest_chars):
                return thinned
        return OffsetMap(self.runs[-1:], self.since, self.end)

    def to_json(self) -> list[int]:
        """Four numbers a run, each less what it is at least."""
        numbers, end, target_end = [], 0, 0
        for run in self.runs:
            numbers += [run.since - end, run.start - run.since, run.target - target_end, run.records]
            end, target_end = run.end, run.target_end
        return numbers

    @classmethod
    def from_json(cls, numbers: Sequence[int], published: int, end: int) -> OffsetMap:
        """Of a target that ends at `end` and has what is below `published`. Raises `TypeError` or `ValueError`.

        Without numbers, as versions without maps stored none, what was published before is in no run.
        """
        runs: list[Run] = []
        last = Run(0, 0, 0, 0)
        for gap, hole, jump, records in zip(*[iter(map(index, numbers))] * 4, strict=True):
            if min(gap, hole, jump, records - 1) < 0:
                raise ValueError(f"not a map of offsets: {numbers!r}")
            last = Run(last.end + gap, last.end + gap + hole, last.target_end + jump, records)
            runs.append(last)
        if last.end > published or last.target_end > end or (runs and last.target_end != end):
            raise ValueError(f"a map of offsets that ends at {last.end} and {last.target_end}")
        return cls(tuple(runs), last.end if runs else published if end else 0, end)

    def _covering(self, offset: int) -> Run | None:
        after = bisect_right(self.runs, offset, key=lambda run: run.end)
        run = self.runs[after] if after < len(self.runs) else None
        return run if run is not None and run.since <= offset else None

    def _fits(self, largest_chars: int) -> bool:
        if len(self.runs) * LEAST_RUN_CHARS > largest_chars + 1:
            return False
        return sum(len(str(number)) + 1 for number in self.to_json()) <= largest_chars

    def _thinned(self, per_octave: int, kept: set[Run]) -> tuple[Run, ...]:
        """The first run, the last, those in `kept`, and of each part of an octave the longest one."""
        longest: dict[tuple[int, int], Run] = {}
        for run in self.runs:
            distance = self.end - run.target_end
            shift = max(0, distance.bit_length() - per_octave.bit_length())
            part = shift, distance >> shift
            if part not in longest or longest[part].records <= run.records:
                longest[part] = run
        chosen = {self.runs[0], self.runs[-1], *kept, *longest.values()}
        return tuple(run for run in self.runs if run in chosen)
