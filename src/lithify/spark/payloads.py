"""Work on its way to tasks: as rows of Spark, which are written to disk, but never with credentials.

    work ──► pickled, `FileAccess` left out ──► row ──► shuffle files, readable for users of the disk
    FileAccess ──► with the code of the task ──► memory of the executors

Spark writes code to disk only where an executor runs out of storage memory, and then encrypted wherever
`spark.io.encryption.enabled` is on, as in Lithify's own sessions (docs/security.md).
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

from lithify.columnar.files.access import FileAccess

_ACCESS = "access"


def packed(work: Any) -> bytes:
    """Pickled work; whatever `FileAccess` is in it, at any depth, only by name."""
    row = io.BytesIO()
    _Pickler(row).dump(work)
    return row.getvalue()


@dataclass(frozen=True, slots=True)
class Unpacking:
    """Travels with the code of a task and puts its `FileAccess` into the work that comes in rows."""

    access: FileAccess

    def __call__(self, payload: bytes) -> Any:
        return _Unpickler(payload, self.access).load()


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        return _ACCESS if isinstance(obj, FileAccess) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, payload: bytes, access: FileAccess) -> None:
        super().__init__(io.BytesIO(payload))
        self._access = access

    def persistent_load(self, pid: Any) -> FileAccess:
        assert pid == _ACCESS  # as `packed` writes it
        return self._access
