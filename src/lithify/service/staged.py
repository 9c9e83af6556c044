"""Files that a commit is about to name must be there (C6): `sweep` may have been at work meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from lithify.errors import DamagedError
from lithify.model.segment import Segment
from lithify.ports import Warehouse


def check_there(warehouse: Warehouse, segments: Iterable[Segment]) -> None:
    """Raises `DamagedError` if the file of one of them is gone."""
    missing = warehouse.files.missing([segment.path for segment in segments])
    if missing:
        raise DamagedError(
            f"{missing[0]}: a file that was written for this commit is gone before it",
            hint="nothing was changed; find out who deletes files of the warehouse, then run it again",
        )
