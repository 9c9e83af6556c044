"""Ends the program within 10 seconds of a signal, also if its main thread hangs (C50).

    signal ─► C handler ─► a byte in a pipe   ─► this thread ─► 9.5 s ─► the process ends
                  └──────► Python's handler, when the main thread runs Python code again

Python runs handlers between two bytecodes of the main thread, which may be inside a library that waits
for an answer, as PostgreSQL's does. So a separate thread ends the process if it does not end by itself;
an uncommitted run has changed nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import NoReturn

from lithify.cli.terminal.output import say

ENDS_WITHIN_S = 9.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_in_time() -> None:
    """Starts the thread. It acts on signals that Python handles; others end a process at once."""
    told, tells = os.pipe()
    os.set_blocking(tells, False)
    signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
    Thread(target=_watch, args=(told,), daemon=True).start()


def _watch(told: int) -> None:
    while number := os.read(told, 1):
        if number[0] in _SIGNALS:
            time.sleep(ENDS_WITHIN_S)
            end_spark(0)
            os._exit(128 + number[0])


def end_spark(within_s: float) -> None:
    """Ends the Spark process that this program started, which could otherwise wait for its clients endlessly."""
    session = sys.modules.get("lithify.spark.session.reset")
    if session is not None:
        session.end_started(within_s)


@contextmanager
def until_done(what: str) -> Iterator[None]:
    """Lets a commit end before a first Ctrl-C ends the program, so that its outcome is known; a second one ends it.

    `what` says for how long, after "waiting". For the main thread, the one in which Python takes signals.
    """
    interrupted = False

    def note(_signal: int, _frame: object) -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        say(f"interrupted: waiting {what}; Ctrl-C again ends at once")

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def leave(code: int) -> NoReturn:
    """Ends the program; without Python's normal exit if a request was abandoned, as that would wait for it."""
    deadline = sys.modules.get("lithify.waits.deadline")
    if deadline is not None and deadline.hanging():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
