"""What a task keeps on disk for a while: in the local folders of the Spark that runs it, encrypted, deleted after.

    task ──► sealed with a key that only its memory has ──► SPARK_LOCAL_DIRS/lithify-…, else TMPDIR ──► opened again

Spark gives its Python workers its local folders (`spark.local.dir`, or the folders of YARN's containers), and deletes
them when it ends, with what a killed worker leaves there. Nothing deletes what is left in TMPDIR, so what may be kept
without Spark is kept in files without a name.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from lithify.errors import EngineError

LOCAL_FOLDERS = "SPARK_LOCAL_DIRS"
MORE_SPACE = "free space there, or set spark.local.dir (without Spark TMPDIR) to a folder with more space"
_NONCE_BYTES, _KEY_BITS = 12, 256


@contextmanager
def spill_folder() -> Iterator[Path]:
    """A folder that only this user can read, deleted at the end. Raises `EngineError` if there can be none."""
    try:
        made = tempfile.TemporaryDirectory(prefix="lithify-", dir=_place())
    except OSError as error:
        raise EngineError(
            f"{error.filename}: temporary files cannot be written there: {error.strerror}", hint=MORE_SPACE
        ) from error
    with made as folder:
        yield Path(folder)


@contextmanager
def spill_file() -> Iterator[IO[bytes]]:
    """A file without a name, of which nothing is left, even if this process is killed.

    Raises `EngineError` if it cannot be created.
    """
    with spilling(spill_place(), "temporary files cannot be written there"):
        file = tempfile.TemporaryFile(dir=_place())  # noqa: SIM115 - closed below
    try:
        yield file
    finally:
        with suppress(OSError):  # what the disk refused before, it refuses again
            file.close()


def spill_place() -> Path:
    """The folder in which folders and files are made."""
    return Path(_place() or tempfile.gettempdir())


@contextmanager
def spilling(folder: Path, what: str, hint: str = MORE_SPACE) -> Iterator[None]:
    """Whatever the disk refuses while something is kept in a folder raises `EngineError`: `what` cannot be done."""
    try:
        yield
    except OSError as error:
        raise EngineError(f"{folder}: {what}: {error.strerror}", hint=hint) from error


def _place() -> str | None:
    """One of Spark's local folders, other processes taking others; None if there is none."""
    there = [folder for folder in os.environ.get(LOCAL_FOLDERS, "").split(",") if os.access(folder, os.W_OK | os.X_OK)]
    return there[os.getpid() % len(there)] if there else None


class Sealer:
    """Encrypts with AES-256-GCM by a random key of its own, which is never stored."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # only who spills needs it

        self._cipher = AESGCM(AESGCM.generate_key(_KEY_BITS))
        self._sealed = 0

    def seal(self, data: bytes) -> bytes:
        nonce = self._sealed.to_bytes(_NONCE_BYTES, "big")  # never used twice with this key
        self._sealed += 1
        return nonce + bytes(self._cipher.encrypt(nonce, data, None))

    def open(self, sealed: bytes) -> bytes:
        """What was sealed here. Raises `EngineError` for other bytes."""
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None))
        except (InvalidTag, ValueError):
            raise EngineError(
                "a temporary file of a task is not what the task wrote", hint="nothing was changed; run it again"
            ) from None
