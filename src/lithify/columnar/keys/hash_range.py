"""How the keys of a log are cut into hash ranges, so that each fits into one task's memory (C38)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lithify.columnar.keys.key_hash import Hashes

_SHIFT = 24
"""What hash ranges are made of is above these bits, which `latest_rows` leaves out of its order."""


@dataclass(frozen=True, slots=True)
class HashRange:
    """The keys of whose `ranges_of` by `count` this is the `index`."""

    index: int
    count: int

    def cut(self, parts: int) -> list[HashRange]:
        """So many ranges that together are this one."""
        return [HashRange(self.index + part * self.count, parts * self.count) for part in range(parts)]

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of the keys with these hashes are in it."""
        return np.asarray(ranges_of(hashes, self.count) == self.index, np.bool_)


def ranges_of(hashes: Hashes, count: int) -> npt.NDArray[np.int32]:
    """The index of the hash range, of so many, of each key with these hashes."""
    return ((hashes >> np.uint64(_SHIFT)) % np.uint64(count)).astype(np.int32)
