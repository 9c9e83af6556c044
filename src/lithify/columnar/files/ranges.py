"""Many small ranges of a file, read together where they lie close to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

MOST_READ_BYTES = 4 * 2**20
"""At once, unless a single range is larger."""

Integers = npt.NDArray[np.int64]


class RangedFile(Protocol):
    """An open file."""

    @property
    def gap_bytes(self) -> int:
        """So many bytes are read faster than it takes to begin another read."""
        ...

    def read_at(self, size: int, start: int) -> bytes:
        """So many bytes from there on."""
        ...


class Ranges:
    """Reads ranges of a file; `bytes_read` counts all that it reads, gaps included. Raises what the file raises."""

    def __init__(self, file: RangedFile) -> None:
        self._file = file
        self.bytes_read = 0

    def read(self, starts: Integers, ends: Integers) -> Iterator[memoryview]:
        """The content of each range; they ascend and do not overlap."""
        for some in self._together(starts, ends):
            first = int(starts[some][0])
            content = memoryview(self._file.read_at(int(ends[some][-1]) - first, first))
            self.bytes_read += len(content)
            for start, end in zip((starts[some] - first).tolist(), (ends[some] - first).tolist(), strict=True):
                yield content[start:end]

    def _together(self, starts: Integers, ends: Integers) -> Iterator[slice]:
        near = (starts[1:] - ends[:-1] <= self._file.gap_bytes).tolist()
        begun = 0
        for at, is_near in enumerate(near, 1):
            if not is_near or ends[at] - starts[begun] > MOST_READ_BYTES:
                yield slice(begun, at)
                begun = at
        if len(starts):
            yield slice(begun, len(starts))
