"""Segment files and masks with bytes that are not theirs, and every way in which a segment is read.

a segment ──► flipped, cut, grown, overwritten, replaced ──► each reading: the truth, or what told of the damage
a mask    ──► the same
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keypass.winners import WinnerFinder, latest_offsets
from lithify.columnar.rewrite import Source, cut, mask, rewrite
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.facts import facts
from lithify.columnar.segment.inspect import inspect_segment
from lithify.columnar.segment.schema import SEGMENT_SCHEMA, VALUE
from lithify.columnar.segment.segment_reader import read_segment
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import DamagedError
from lithify.model.finding import Finding
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.rules.compaction.survivor_rules import SurvivorRules
from support.generated.parquet_bombs import write_bomb
from support.topics.stored_topics import segment_table

ACCESS = FileAccess()
_RUNS = count()
GROUPS, RECORDS = 3, 60
LAST = GROUPS * RECORDS * 2
"""Offsets have gaps, as those of a compacted log do."""


def a_segment(folder: Path) -> Segment:
    """One of several row groups, with tombstones and headers."""
    writer = SegmentWriter(ACCESS, SegmentSpec(str(folder), "whole", 0, 2**30, "zstd"), attempt="a")
    for group in range(GROUPS):
        records = [_record(group * RECORDS + number) for number in range(RECORDS)]
        writer.write(segment_table(records))
        writer.flush()
    (segment,) = writer.close()
    return segment


def _record(number: int) -> Record:
    value = None if number % 7 == 0 else b"value-%d" % number
    headers = (("h", b"x%d" % number),) if number % 3 == 0 else ()
    return Record(b"key%03d" % (number % 20), value, 10**12 + number, headers, 0, 2 * number)


def mutated(whole: bytes, seed: int, flips: int) -> Iterator[tuple[str, bytes]]:
    """What was done, and the bytes after it."""
    chance = random.Random(seed)
    footer = len(whole) - int.from_bytes(whole[-8:-4], "little") - 8
    for number in range(flips):
        at = chance.randrange(footer if number % 2 else 0, len(whole))
        bit = chance.randrange(8)
        yield f"bit {bit} of byte {at}", whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    for at in chance.sample(range(len(whole)), 12):
        yield f"cut at {at}", whole[:at]
        yield f"zeros from {at} on", whole[:at] + bytes(min(64, len(whole) - at)) + whole[at + 64 :]
        yield f"two bytes for one at {at}", whole[:at] + whole[at : at + 1] + whole[at:]
    yield "grown", whole + bytes(100)
    yield "empty", b""
    yield "a footer of 2 GiB", whole[:-8] + b"\xff\xff\xff\x7f" + whole[-4:]


def readings(segment: Segment, folder: Path) -> dict[str, Callable[[], object]]:
    """Each returns what it read."""
    rules = SurvivorRules(
        0, segment.end_offset, keep_keyless=False, empty_is_tombstone=False, tombstones_expire_below=0
    )

    (folder / "copies").mkdir(exist_ok=True)

    def spec() -> SegmentSpec:
        return SegmentSpec(str(folder / "copies"), f"run{next(_RUNS)}", 0, 2**30, "zstd")

    everything = Source(segment, segment.records, DeadPositions.all_but(range(segment.records)))
    return {
        "whole": lambda: _records([segment]),
        **{
            f"from {low}": lambda low=low: _records([segment], low) for low, _ in pairwise(range(1, LAST, RECORDS // 2))
        },
        "winners": lambda: list(latest_offsets(ACCESS, (segment,), rules, WinnerFinder(2**24, "seed"))),
        "rewrite": lambda: _records(rewrite(ACCESS, spec(), [everything], attempt="a")[0]),
        "cut": lambda: _records(cut(ACCESS, spec(), segment, LAST // 2 + 3)),
        "verify": lambda: [_shown(piece) for piece in inspect_segment(ACCESS, segment, ["h"], None)],
    }


def _records(segments: Any, start: int = 0) -> list[Record]:
    return [r for s in segments for table in read_segment(ACCESS, s, start_offset=start) for r in to_records(table)]


def _shown(piece: Any) -> object:
    if isinstance(piece, Finding):
        raise DamagedError(piece.message)
    return piece.to_pylist() if isinstance(piece, pa.Table) else piece


def read_mutated(folder: Path, seed: int, flips: int) -> list[str]:
    """What went wrong: readings that returned something else, or failed with no `DamagedError` that names the file."""
    segment = a_segment(folder)
    truth = {name: read() for name, read in readings(segment, folder).items()}
    other = replace(segment, path=str(folder / "mutated.parquet"))
    wrong = []
    for what, content in mutated(Path(segment.path).read_bytes(), seed, flips):
        Path(other.path).write_bytes(content)
        for name, read in readings(other, folder).items():
            if problem := _problem(read, truth[name], other.path):
                wrong.append(f"{what}: {name}: {problem}")
    return wrong


def read_mutated_mask(folder: Path, seed: int, flips: int) -> list[str]:
    """The same of the mask of a segment, of which each reading leaves out what it names."""
    masked = a_masked_segment(folder)
    path = Path(masked.id)
    found = readings(masked, folder)
    truth = {name: read() for name, read in found.items()}
    assert len(truth["whole"]) == masked.records < masked.records_in_file  # type: ignore[arg-type]
    wrong = []
    for what, content in mutated(path.read_bytes(), seed, flips):
        path.write_bytes(content)
        for name, read in found.items():
            if problem := _problem(read, truth[name], masked.id):
                wrong.append(f"{what}: {name}: {problem}")
    return wrong


def a_masked_segment(folder: Path) -> Segment:
    """The same with every third record dead."""
    whole = a_segment(folder)
    spec = SegmentSpec(str(folder), "masking", 0, 2**30, "zstd")
    source = Source(whole, whole.records * 2 // 3, DeadPositions.of(range(0, whole.records, 3)))
    return mask(ACCESS, spec, source, attempt="a")[0]


def _problem(read: Callable[[], object], truth: object, named: str) -> str | None:
    try:
        return None if read() == truth else "SILENTLY OTHER"
    except DamagedError as error:
        return None if named in error.message and "\n" not in error.message else f"unnamed: {error}"
    except Exception as error:
        return repr(error)[:200]


def read_bomb(folder: Path) -> list[str]:
    """What went wrong with a file of a few kilobytes that would take gigabytes, in the place of a segment."""
    path, rows = folder / "bomb.parquet", 4096
    others = {name: _plain_column(name, rows) for name in SEGMENT_SCHEMA.names if name != VALUE}
    write_bomb(path, SEGMENT_SCHEMA, others)
    segment = facts(str(path), 0, pq.read_metadata(path), path.stat().st_size)
    found = readings(segment, folder)
    del found["winners"]  # it reads no values
    named = f"{path}: row group 0 can expand to"
    problems = {name: _problem(read, None, named) for name, read in found.items()}
    return [f"{name}: {problem}" for name, problem in problems.items() if problem]


def _plain_column(name: str, rows: int) -> pa.Array:
    field = SEGMENT_SCHEMA.field(name)
    match name:
        case "key":
            return pa.array([b"k"] * rows, field.type)
        case "headers":
            return pa.nulls(rows, field.type)
        case "offset":
            return pa.array(range(rows), field.type)
        case _:
            return pa.array([0] * rows, field.type)
