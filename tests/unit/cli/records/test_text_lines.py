"""Lines of pipes: whole whatever the reads are, within their bound, and appended in time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.cli.records.text_lines import LineBatch, LineLimits, batches_of, opened_lines
from lithify.errors import InvalidInputError

LONG_MS, SOON_MS = 60_000, 20
Told = tuple[bytes, ...]


def limits(linger_ms: int = LONG_MS, most: int = 1_000) -> LineLimits:
    return LineLimits(most, linger_ms, lambda: 7)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    yield path


def batches(path: Path, told: Told, chosen: LineLimits, pause_s: float = 0.0) -> list[LineBatch]:
    def tell() -> None:
        with path.open("wb", buffering=0) as end:
            for part in told:
                end.write(part)
                time.sleep(pause_s)

    telling = Thread(target=tell)
    telling.start()
    try:
        with opened_lines(str(path)) as lines:
            return list(batches_of(lines, "stdin", chosen))
    finally:
        telling.join()


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_a_pipe_has_the_lines_of_a_file(tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("lines")
    os.mkfifo(folder / "pipe")
    ends = [0, *sorted(cuts), len(data)]
    told = tuple(data[a:b] for a, b in pairwise(ends))
    found = batches(folder / "pipe", told, limits())
    (folder / "file").write_bytes(data)
    with opened_lines(str(folder / "file")) as lines:
        expected = list(batches_of(lines, "file", limits()))
    assert found == expected
    kept = [(n, line) for n, line in enumerate(data.split(b"\n"), 1) if line not in (b"", b"\r")]
    assert [pair for batch in found for pair in zip(batch.numbers, batch.lines, strict=True)] == kept


def test_what_has_come_is_a_batch_after_the_linger(pipe: Path) -> None:
    found = batches(pipe, (b"a\nb\n", b"c\n"), limits(SOON_MS), pause_s=0.5)
    assert [batch.lines for batch in found] == [[b"a", b"b"], [b"c"]]
    assert [batch.numbers for batch in found] == [[1, 2], [3]]
    assert found[0].read_ms == [7, 7]


def test_half_a_line_waits_for_its_end(pipe: Path) -> None:
    found = batches(pipe, (b"a\nb", b"b\n"), limits(SOON_MS), pause_s=0.5)
    assert [batch.lines for batch in found] == [[b"a"], [b"bb"]]


@pytest.mark.parametrize("told", [(b"x" * 101 + b"\n",), (b"x" * 5_000,), (b"x" * 90, b"x" * 90)])
def test_a_line_beyond_the_bound_is_refused_before_it_is_whole(pipe: Path, told: Told) -> None:
    with pytest.raises(InvalidInputError, match="stdin, line 2: it has more than 100 bytes"):
        batches(pipe, (b"x" * 99 + b"\n", *told), limits(most=100))
