"""Ends the program within 10 seconds of a signal, even if its main thread hangs (C50).

    signal ─► C handler ─► a byte in a pipe   ─► this thread ─► 9.5 s ─► the process ends
                  └──────► Python's handler, when the main thread runs Python code again

Python runs handlers between two bytecodes of the main thread, which may be inside a library that waits
for an answer, as PostgreSQL's does. So a separate thread ends the process if it does not end by itself;
an uncommitted run has changed nothing.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import NoReturn

ENDS_WITHIN_S = 9.5
SILENT_S = 1.0
WORDS_S = 0.2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_in_time(first_words: Callable[[], None], last_words: Callable[[], None]) -> None:
    """Starts the thread. It acts on signals that Python handles; others end a process at once.

    `first_words` says that the end takes a while; `last_words` what the main thread, which hangs then, could not
    say any more.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    Thread(target=_watch, args=(read_end, first_words, last_words), daemon=True).start()


def _watch(read_end: int, first_words: Callable[[], None], last_words: Callable[[], None]) -> None:
    while number := os.read(read_end, 1):
        if number[0] in _SIGNALS:
            time.sleep(SILENT_S)
            _say(first_words)
            time.sleep(ENDS_WITHIN_S - SILENT_S)
            _say(last_words)
            end_spark(0)
            os._exit(128 + number[0])


def _say(words: Callable[[], None]) -> None:
    speaker = Thread(target=words, daemon=True)
    speaker.start()
    speaker.join(WORDS_S)  # the main thread may hang because nobody reads what it prints


def end_spark(within_s: float) -> None:
    """Ends the Spark process that this program started, which could otherwise wait for its clients endlessly."""
    session = sys.modules.get("lithify.spark.session.ended_session")
    if session is not None:
        session.end_started(within_s)


class Interrupts:
    """Takes Ctrl-C at once, or lets a commit end first, so that its outcome is known; a second one ends the program."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._waits, self._asked = tell, "", False

    def wait(self, what: str) -> None:
        """From now on the first Ctrl-C waits; `what` says for how long, after "waiting"."""
        self._waits = what

    def go_on(self) -> None:
        """It counts at once again, and one that has waited counts now."""
        self._waits = ""
        if self._asked:
            raise KeyboardInterrupt

    def take(self, _signal: int, _frame: object) -> None:
        """The handler of the signal."""
        if self._asked or not self._waits:
            raise KeyboardInterrupt
        self._asked = True
        self._tell(f"interrupted: waiting {self._waits}; Ctrl-C again ends at once")


@contextmanager
def interrupts(tell: Callable[[str], None]) -> Iterator[Interrupts]:
    """For the main thread, the only one that gets signals; `tell` gets what there is to say of the first one."""
    taken = Interrupts(tell)
    if current_thread() is not main_thread():
        yield taken
        return
    before = signal.signal(signal.SIGINT, taken.take)
    try:
        yield taken
    finally:
        signal.signal(signal.SIGINT, before)
    taken.go_on()


def leave(code: int) -> NoReturn:
    """Ends the program; without Python's normal exit if a request was abandoned, as that would wait for it."""
    deadline = sys.modules.get("lithify.waits.deadline")
    if deadline is not None and deadline.hanging():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    gc.freeze()  # everything ends now: a last look for cycles in it takes up to a fifth of a command's time
    sys.exit(code)
