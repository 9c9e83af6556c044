"""How many files the process of a gateway may have open: each connection is one of them."""

from __future__ import annotations

from contextlib import suppress
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Final

FILES: Final = 16_384
"""More than all connections and the work of a gateway take."""
NEEDED: Final = 8_000
"""With fewer there are fewer connections than there may be."""


def allow_files() -> tuple[str, ...]:
    """Raises the limit of this process, which is often 1,024, as far as it may. Returns what a person should know."""
    files, most = getrlimit(RLIMIT_NOFILE)
    wanted = FILES if most == RLIM_INFINITY else min(FILES, most)
    if files != RLIM_INFINITY and files < wanted:
        with suppress(OSError, ValueError):  # a system may have a lower limit for all processes
            setrlimit(RLIMIT_NOFILE, (wanted, most))
    files, _ = getrlimit(RLIMIT_NOFILE)
    if files == RLIM_INFINITY or files >= NEEDED:
        return ()
    return (f"this process may have {files} files open (`ulimit -n`): with {NEEDED} it takes more connections",)
