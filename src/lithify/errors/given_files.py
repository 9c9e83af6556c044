"""Reads small files that a user names: settings, tokens, credentials, positions. Bounded, in bytes and in time.

A name may belong to anything: a folder or a device is refused before it is opened, since that may block for ever, and
so is a pipe. Only a file that is read once, as by `--kafka-conf-file <(vault ...)`, may be a pipe.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LARGEST_FILE_BYTES: Final = 2**20
PIPE_WAIT_S: Final = 60.0
"""For each piece that comes through a pipe: what writes may ask for a password first."""
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
}
_PIECE_BYTES: Final = 64 * 2**10


def read_given(path: str | Path, most_bytes: int = LARGEST_FILE_BYTES, *, pipes: bool = False) -> bytes:
    """The content of a file, or with `pipes` also of a pipe.

    Raises `OSError`, whose `strerror` says what is wrong with it: for example, that it is not a file, or is larger than
    `most_bytes`.
    """
    content = head_of_given(path, most_bytes + 1, pipes=pipes)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes} bytes")
    return content


def head_of_given(path: str | Path, most_bytes: int, *, pipes: bool = False) -> bytes:
    """No more than its first bytes. Raises as `read_given`."""
    check_given(path, pipes=pipes)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return b"".join(_pieces(descriptor, most_bytes))
    finally:
        os.close(descriptor)


def check_given(path: str | Path, *, pipes: bool = False) -> None:
    """Raises `OSError` if `read_given` would, before it reads."""
    try:
        kind = stat.S_IFMT(Path(path).stat().st_mode)
    except ValueError:
        raise OSError(errno.EINVAL, "this name is not valid for a file") from None
    if kind != stat.S_IFREG and not (pipes and kind == stat.S_IFIFO):
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'something else')}, not a file")


def _pieces(descriptor: int, most_bytes: int) -> Iterator[bytes]:
    """Until there is no writer any more; one that is not there yet is waited for."""
    left, begun = most_bytes, False
    while left > 0:
        try:
            piece = os.read(descriptor, min(left, _PIECE_BYTES))
        except BlockingIOError:  # the pipe is empty now
            _wait(descriptor)
            continue
        if not piece and begun:
            return
        if not piece:
            _wait(descriptor)  # ends at once for an empty file
        begun = True
        left -= len(piece)
        yield piece


def _wait(descriptor: int) -> None:
    ready = select.poll()  # `select` takes no descriptor above 1023
    ready.register(descriptor, select.POLLIN)
    if not ready.poll(PIPE_WAIT_S * 1000):
        raise TimeoutError(errno.ETIMEDOUT, f"nothing came through this pipe for {PIPE_WAIT_S:g} s")
