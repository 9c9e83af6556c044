"""Whole programs of our own in a session of their own, so that what they start can be found and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PROGRAM = (sys.executable, "-m", "lithify")
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that lives for minutes: compiled once and quickly, collected without threads of its own."""
ENDS_WITHIN_S = 60
"""A JVM that has lost its program ends by itself, and so do the workers of one that has ended."""


def start(*command: str, env: dict[str, str] | None = None, stdin: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | (env or {}),
    )


def finished(process: subprocess.Popen[str], timeout_s: float = 600) -> str:
    """What an undisturbed program prints; it must succeed."""
    try:
        printed, errors = process.communicate(timeout=timeout_s)
    finally:
        end(process)
    assert process.returncode == 0, printed + errors
    return printed


def kill(process: subprocess.Popen[str], *, alone: bool = False) -> str:
    """Ends a program with all that it started, or alone: then the others have to end by themselves."""
    if alone:
        process.kill()
    else:
        end(process)
    printed, _ = process.communicate(timeout=ENDS_WITHIN_S)
    until_s = time.monotonic() + ENDS_WITHIN_S
    while left := running(process.pid):
        assert time.monotonic() < until_s, f"still running: {left}"
        time.sleep(0.05)
    return printed


def end(process: subprocess.Popen[str]) -> None:
    """Kills everything in the session of a program."""
    for pid in running(process.pid):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, signal.SIGKILL)


def running(session: int) -> dict[int, str]:
    """The living processes of a session, and their commands. Those of Spark leave their process group."""
    return _living(lambda _parent, its_session: its_session == session)


def children() -> set[int]:
    """The living processes that this one has started."""
    return set(_living(lambda parent, _session: parent == os.getpid()))


def _living(is_wanted: Callable[[int, int], bool]) -> dict[int, str]:
    """The commands of the processes of which the ids of their parent and of their session are as wanted."""
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                if state not in "ZX" and is_wanted(int(parent), int(session)):
                    found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")[:200]
    return found
