"""Reads documents that others may rewrite meanwhile, in stores that give size and content in two answers (C48).

    reader   HEAD: 80 bytes ─────────────► GET of 80 bytes     cut, if the new one is longer; with bytes of this
    writer             PUT of 60 bytes ▲                       process's memory at its end, if it is shorter

Arrow requests first the size from an object store, then that many bytes. So documents are padded with blanks to
blocks, which keeps the size. A document with a wrong checksum is read again before it is reported as damaged.
"""

from __future__ import annotations

from typing import Any

from lithify.columnar.files.access import FileAccess, local_path
from lithify.columnar.files.sealed import unsealed
from lithify.errors import DamagedError, WarehouseError

LOOKS = 8
"""Reads of a document in an object store before it counts as damaged."""
BLOCK_BYTES = 4096


def padded(text: bytes) -> bytes:
    """The JSON text with blanks behind it, which every version of Lithify ignores."""
    return text + b" " * (-len(text) % BLOCK_BYTES)


def read_sealed(access: FileAccess, path: str) -> dict[str, Any]:
    """The content of the document at `path`.

    Raises what `FileAccess.read` raises, `DamagedError` if the file remains what it is and does not hold, and
    `WarehouseError` if it was still another one at the last look.
    """
    looks = 1 if local_path(path) is not None else LOOKS
    before: bytes | None = None
    for look in range(1, looks + 1):
        text = access.read(path)
        try:
            return unsealed(path, text)
        except DamagedError:
            if look == looks and before in (None, text):
                raise
        before = text
    raise WarehouseError(
        f"{path}: none of {LOOKS} reads was complete, because the file was rewritten during each of them",
        hint="try again; nothing was changed",
    )
