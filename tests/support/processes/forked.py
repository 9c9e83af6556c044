"""Children of this process that are killed at a moment of our choosing, or left to end.

    this process   imports done, no threads ──fork──► child: one action, then it says how it ended
                   sleeps, SIGKILL ────────────────────┘   at any moment, also before or after that

A child costs some milliseconds where a program of its own costs the start of Python and its imports.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LONGEST_S = 60
"""No action takes longer: a child that is still there then ends by itself."""

_BEGUN = b"!"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a child said before it ended: its result, or what it raised, and how long it took."""

    value: Any
    error: BaseException | None
    seconds: float


def outcome(action: Callable[[], Any]) -> Reply:
    """The outcome of an action in an undisturbed child."""
    child, replies = _start(action)
    with os.fdopen(replies, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"the child ended with {status} and said {said!r}"
    reply = pickle.loads(said[len(_BEGUN) :])
    assert isinstance(reply, Reply)
    return reply


def result(action: Callable[[], Any]) -> Any:
    """The result of an action in a child, or what it raised."""
    reply = outcome(action)
    if reply.error is not None:
        raise reply.error
    return reply.value


def killed(action: Callable[[], Any], after_s: float) -> Reply | None:
    """Kills a child so long after it began; what it had said by then, if anything."""
    child, replies = _start(action, stays=True)
    with os.fdopen(replies, "rb") as pipe:
        assert pipe.read(len(_BEGUN)) == _BEGUN
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        said = pipe.read()
    try:
        reply = pickle.loads(said)
    except (EOFError, pickle.UnpicklingError):  # it was killed in the middle of a word, or before
        return None
    assert isinstance(reply, Reply)
    return reply


def warm(action: Callable[[], Any]) -> None:
    """Does it in a child, and imports here what that has imported, so that no other child has to."""

    def imported() -> list[str]:
        action()
        return [name for name, module in sys.modules.items() if getattr(module, "__spec__", None) is not None]

    for name in result(imported):
        with suppress(ModuleNotFoundError):  # parts of extensions that are no modules of their own
            importlib.import_module(name)


def _start(action: Callable[[], Any], *, stays: bool = False) -> tuple[int, int]:
    """A child and the pipe on which it says that it began, and how it ended; one that `stays` waits to be killed."""
    assert threading.active_count() == 1, "a child has none of the threads that its parent had"
    replies, said = os.pipe()
    child = os.fork()
    if child:
        os.close(said)
        return child, replies
    try:
        signal.alarm(LONGEST_S)
        os.close(replies)
        os.write(said, _BEGUN)
        os.write(said, pickle.dumps(_tried(action)))
        os.close(said)
        while stays:
            signal.pause()
    finally:
        os._exit(0)


def _tried(action: Callable[[], Any]) -> Reply:
    begun_s = time.monotonic()
    try:
        value, error = action(), None
    except BaseException as raised:
        value, error = None, raised
        if isinstance(raised, AssertionError):  # its place does not travel, and here it tells all
            traceback.print_exc()
    return Reply(value, error, time.monotonic() - begun_s)
