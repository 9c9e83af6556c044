"""Deadlines for calls to other machines, which may send nothing, or a byte now and then (C50).

Libraries bound the time between two bytes, so a peer that sends single bytes can stall a call for ever.
These deadlines bound the whole time, from the start of a call.

    within(90, call)          runs the call on a thread of its own, and abandons it at the deadline
    AnswerDeadline            shuts the socket of a connection, so that the call on it fails
    Deadline                  counts, for loops over a socket of our own

The first is for libraries that show no socket, such as Arrow's. An abandoned call holds a thread and
a connection until its peer ends it, so their number is limited.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Lock, Thread, Timer
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

ENDING = Event()
"""Set by the signal handler of a program that is to end: then it retries to connect to no server any more."""

HANGING_AT_MOST = 64
"""The most abandoned calls; while there are this many, no other is started."""

_lock = Lock()
_hanging: set[object] = set()


def hanging() -> int:
    """How many abandoned calls have not ended yet."""
    with _lock:
        return len(_hanging)


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns or raises. Raises `TimeoutError` at the deadline; the call may still complete then.

    A thread that waits here can be interrupted, which it could not be in the call itself.
    """
    if hanging() >= HANGING_AT_MOST:
        raise TimeoutError(f"{HANGING_AT_MOST} requests are already waiting for an answer")
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            with _lock:
                _hanging.discard(outcome)

    Thread(target=run, daemon=True).start()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        if outcome.done():
            raise  # the call's own
    finally:
        with _lock:
            if not outcome.done():
                _hanging.add(outcome)
    raise TimeoutError(f"no whole answer within {seconds:.3g} s")


class Deadline:
    """So many seconds from now on."""

    __slots__ = ("_until_s", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until_s = monotonic() + seconds

    def left_s(self) -> float:
        """Seconds, more than 0. Raises `TimeoutError` when they are over."""
        left_s = self._until_s - monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no whole answer within {self.seconds:.3g} s")
        return left_s


class AnswerDeadline:
    """The deadline of one connection: shuts its socket, so that the waiting thread gets an error."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._timer: Timer | None = None
        self._lock = Lock()

    def begin(self, descriptor: int, seconds: float) -> None:
        """Counts from now on, unless it does already. Raises `OSError` if it is not an open socket."""
        with self._lock:
            if self._timer is None:
                # A descriptor of our own: by the time it is shut, the driver's number may be another's.
                self._socket = socket.socket(fileno=os.dup(descriptor))
                self._timer = Timer(seconds, self._shut)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        """The answer has come."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._close()

    def _shut(self) -> None:
        with self._lock:
            if self._socket is not None:  # else it was answered just now
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
            self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._timer = None
