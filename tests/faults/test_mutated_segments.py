"""Segment files and masks that were damaged or replaced: what reads them gets the truth, or names them (C8, C51).

Every reading of every mutated file runs in a process with little memory, which must not die of it.
"""

from __future__ import annotations

from pathlib import Path

from faults.mutated_segments import read_bomb, read_mutated, read_mutated_mask
from support.processes.bounded_child import in_bounded_child

MORE_BYTES = 3 * 2**28
"""On a busy machine half a gigabyte was too little: DuckDB and Arrow keep a pool for each thread that was started."""


def test_mutated_segments_are_named_and_never_read_as_something_else(tmp_path: Path) -> None:
    """C8: bits flipped, cut, overwritten, grown. A flipped bit used to end the process, and one to lose records."""
    assert in_bounded_child(read_mutated, tmp_path, 15, 150, more_bytes=MORE_BYTES) == []


def test_mutated_masks_are_named_and_hide_nothing_else(tmp_path: Path) -> None:
    """C8: a flipped bit brings no dead record back, and hides none that is live."""
    assert in_bounded_child(read_mutated_mask, tmp_path, 31, 30, more_bytes=MORE_BYTES) == []


def test_a_small_file_that_expands_to_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """C51: a user who may write into the bucket cannot fill the memory of a cleaner."""
    assert in_bounded_child(read_bomb, tmp_path, more_bytes=MORE_BYTES) == []
