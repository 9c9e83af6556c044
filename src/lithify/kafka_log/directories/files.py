"""Files of a log directory, which a stranger may have made: only regular ones are opened, as others may never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

LARGEST_TEXT_BYTES: Final = 64 * 2**20
"""Of a checkpoint. One of 100,000 partitions has some MiB."""
_BUFFER_BYTES: Final = 2**20
"""Many batches are small, and each is read by itself."""


def opened(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """To be read and closed. Raises `OSError`, also for what is not a regular file."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)  # else a pipe waits for its other end
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(descriptor, "rb", _BUFFER_BYTES)


def text_of(path: Path) -> str:
    """Of a small file. Raises `OSError`."""
    with opened(path) as file:
        data = file.read(LARGEST_TEXT_BYTES + 1)
    if len(data) > LARGEST_TEXT_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST_TEXT_BYTES} bytes", str(path))
    return data.decode(errors="replace")
