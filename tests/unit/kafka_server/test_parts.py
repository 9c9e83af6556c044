"""Parts of segments in memory: encoded once for all who ask for them, and no more of them than fit."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event

import pyarrow as pa
import pytest

from lithify.errors import DamagedError
from lithify.kafka_server.logs import parts as parts_module
from lithify.kafka_server.logs.parts import COLUMNS, READING_KEPT_MS, Part, Parts, Place
from lithify.model.segment import Segment
from support.builders import a_segment
from support.kafka.batches import table_of

PIECE = 10
"""Records of it."""


@dataclass
class Files:
    """Segments with a record at every offset, in pieces of `PIECE`."""

    opened: list[tuple[str, int]] = field(default_factory=list)
    open: int = 0
    pieces: int = 0
    hold: Event = field(default_factory=Event)
    damage: DamagedError | None = None

    def __post_init__(self) -> None:
        self.hold.set()

    def read_pieces(self, segment: Segment, start: int, columns: object, size: int) -> Iterator[pa.Table]:
        self.opened.append((segment.path, start))
        self.open += 1
        try:
            while start < segment.end_offset:
                assert self.hold.wait(10)
                if self.damage is not None:
                    raise self.damage
                self.pieces += 1
                end = min(start + PIECE, segment.end_offset)
                rows = [(offset, 1, 0, b"k", b"v" * 50, None) for offset in range(start, end)]
                yield pa.Table.from_batches([table_of(rows)]).select(list(COLUMNS))
                start = end
        finally:
            self.open -= 1


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def now_ms() -> list[int]:
    return [0]


@pytest.fixture
def parts(files: Files, now_ms: list[int]) -> Parts:
    return Parts(files, lambda: now_ms[0])  # type: ignore[arg-type]


SEGMENT = a_segment("s", 100, 200)


def read(parts: Parts, segment: Segment, offset: int, start: int = 0, leader_epoch: int = 0) -> Part:
    return parts.part(segment, offset, start=start, leader_epoch=leader_epoch)


def read_all(parts: Parts, segment: Segment = SEGMENT) -> None:
    offset = segment.base_offset
    while offset < segment.end_offset:
        offset = read(parts, segment, offset).end


def kept(parts: Parts, segment: Segment, offset: int) -> Part | None:
    """The part that an offset is in, if it is in memory."""
    return parts._found(Place(segment.id, segment.base_offset, 0), offset)


def test_a_segment_is_decoded_once_for_clients_that_read_on(parts: Parts, files: Files) -> None:
    read_all(parts)
    read_all(parts)
    assert (files.opened, files.pieces, files.open) == ([("s", 100)], 10, 0)


def test_who_begins_in_the_middle_finds_the_part(parts: Parts, files: Files) -> None:
    read_all(parts)
    found = read(parts, SEGMENT, 155)
    assert (found.start, found.end) == (150, 160) and files.pieces == 10
    assert found.first_at(155) == 0 and found.first_at(160) == 1


def test_who_begins_where_nothing_is_known_reads_from_there(parts: Parts, files: Files) -> None:
    assert (read(parts, SEGMENT, 155).start, read(parts, SEGMENT, 165).end) == (155, 175)
    assert read(parts, SEGMENT, 158).start == 155
    assert read(parts, SEGMENT, 104).start == 104
    assert files.opened == [("s", 155), ("s", 104)] and files.open == 2


@pytest.mark.parametrize("other", [{"leader_epoch": 1}, {"start": 120}])
def test_parts_of_other_epochs_and_other_starts_are_others(parts: Parts, files: Files, other: dict[str, int]) -> None:
    first = read(parts, SEGMENT, 155)
    assert read(parts, SEGMENT, 155, **other) is not first
    assert read(parts, SEGMENT, 155, start=90) is first  # below the segment it counts from its first record on


def test_another_mask_makes_another_part(parts: Parts, files: Files) -> None:
    from lithify.model.segment import Mask

    first = read(parts, SEGMENT, 100)
    assert read(parts, replace(SEGMENT, mask=Mask("m", 1, 1)), 100) is not first


def test_nothing_below_the_start_is_read(parts: Parts, files: Files) -> None:
    found = read(parts, SEGMENT, 100, start=150)
    assert files.opened == [("s", 150)] and (found.start, found.end) == (100, 160)


def test_what_others_wait_for_is_built_once(parts: Parts, files: Files) -> None:
    files.hold.clear()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(read, parts, SEGMENT, 100) for _ in range(8)]
        files.hold.set()
        assert len({id(one.result()) for one in asked}) == 1
    assert files.pieces == 1


def test_damage_is_told_to_all_and_not_kept(parts: Parts, files: Files) -> None:
    files.damage = DamagedError("s is damaged")
    files.hold.clear()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(read, parts, SEGMENT, 100) for _ in range(4)]
        files.hold.set()
        assert all(isinstance(one.exception(), DamagedError) for one in asked)
    files.damage = None
    assert read(parts, SEGMENT, 100).end == 110


def test_no_more_is_kept_than_fits(parts: Parts, files: Files) -> None:
    size = read(parts, SEGMENT, 100).size_bytes
    parts.kept_bytes = 3 * size
    read_all(parts)
    assert kept(parts, SEGMENT, 195) is not None
    assert kept(parts, SEGMENT, 165) is None
    read(parts, SEGMENT, 175)  # used again, so that the other one goes
    read(parts, a_segment("t", 0, 10), 0)
    assert kept(parts, SEGMENT, 175) is not None
    assert kept(parts, SEGMENT, 185) is None


def test_few_files_are_open_and_none_for_long(parts: Parts, files: Files, now_ms: list[int], monkeypatch) -> None:
    monkeypatch.setattr(parts_module, "READING_BYTES", 3 * 2**19)
    for number in range(5):
        read(parts, a_segment(f"s{number}", 0, 100), 0)
        now_ms[0] += 1
    assert files.open == 3
    read(parts, a_segment("s4", 0, 100), 10)
    assert len(files.opened) == 5 and files.open == 3
    now_ms[0] += READING_KEPT_MS - 1
    parts.close_idle()
    assert files.open == 1
    parts.close()
    assert files.open == 0 and kept(parts, a_segment("s4", 0, 100), 0) is None


@pytest.mark.parametrize(("folder", "open_at_once"), [("/", 3), ("s3://bucket/", 1)])
def test_in_an_object_store_readings_hold_row_groups(
    parts: Parts, files: Files, monkeypatch: pytest.MonkeyPatch, folder: str, open_at_once: int
) -> None:
    monkeypatch.setattr(parts_module, "READING_BYTES", 3 * 2**21)
    for number in range(5):
        read(parts, a_segment(f"{folder}s{number}", 0, 100, records=2**20, size_bytes=100 * 2**20), 0)
    assert files.open == open_at_once


def test_a_segment_with_nothing_left_is_passed(parts: Parts) -> None:
    found = read(parts, a_segment("e", 5, 5 + PIECE), 5, start=5 + PIECE)
    assert (found.start, found.end, found.batches.last_offsets) == (5, 15, ())
