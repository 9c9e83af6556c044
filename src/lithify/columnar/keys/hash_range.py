"""Divides the keys of a log into hash ranges that each fit into one task's memory (C38)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lithify.columnar.keys.key_hash import Hashes

_SHIFT = 24
"""Hash ranges use the bits above these, since `latest_rows` overwrites low bits with row numbers."""


@dataclass(frozen=True, slots=True)
class HashRange:
    """The keys for which `ranges_of(hashes, count)` is `index`."""

    index: int
    count: int

    def cut(self, parts: int) -> list[HashRange]:
        """Divides this range into `parts` ranges."""
        return [HashRange(self.index + part * self.count, parts * self.count) for part in range(parts)]

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each hash, whether its key is in this range: bool, as long as `hashes`."""
        return np.asarray(ranges_of(hashes, self.count) == self.index, np.bool_)


def ranges_of(hashes: Hashes, count: int) -> npt.NDArray[np.int32]:
    """For each hash, the index in [0, count) of its hash range: int32, as long as `hashes`."""
    return ((hashes >> np.uint64(_SHIFT)) % np.uint64(count)).astype(np.int32)
