"""Pickles tasks to rows of Spark without credentials, since Spark writes rows to disk.

    task ──► pickled without its `FileAccess` ──► row ──► shuffle files, readable by users of the disk
    FileAccess ──► in the closure of the task's function ──► memory of the executors

Spark writes closures to disk only if an executor runs out of storage memory, and encrypts them if
`spark.io.encryption.enabled` is on, as in Lithify's own sessions (docs/understand/security.md).
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

from lithify.columnar.files.access import FileAccess

_ACCESS = "access"


def packed(work: Any) -> bytes:
    """`work` pickled, with a placeholder for each `FileAccess` in it, at any depth."""
    row = io.BytesIO()
    _Pickler(row).dump(work)
    return row.getvalue()


@dataclass(frozen=True, slots=True)
class Unpacking:
    """Unpickles work from rows with `access` in place of the placeholders. Part of a task's closure."""

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
        assert pid == _ACCESS  # written by `packed`
        return self._access
