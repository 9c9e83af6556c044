"""How what runs until it is stopped begins (C50): a signal ends it in order, and an outage only delays it.

begins ─► outage ─► told once ─► tried again, for as long as it lasts ─► told once that it is over
      └─► any other error ends it at once
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from lithify.errors import LithifyError

T = TypeVar("T")

TellBeginning = Callable[[str, Mapping[str, Any]], None]
"""Gets `trouble`, `recovered` or `stopped`, with the facts that an event of this kind has."""

MAX_PAUSE_S = 5.0
"""Between two tries, each of which has a patience of its own with a server that restarts."""

WHAT = "what this start waited for"


class _StoppedEarly(BaseException):
    """A signal came before there was anything to stop."""


def begun(begin: Callable[[], T], tell: TellBeginning, *, waits: bool) -> T | None:
    """What `begin` returns, which installs the handlers that signals have from then on; None if one came before.

    With `waits` it is tried again while there is an outage (`LithifyError.is_outage`).
    """

    struck: list[str] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        on_signals(_ignored)  # a second one would end what is done about the first
        struck.append(signal.Signals(number).name)
        raise _StoppedEarly

    def unstruck() -> T:
        _check(struck)
        run = begin()
        _check(struck)
        return run

    try:
        on_signals(handle)
        return _after_outages(unstruck, tell) if waits else unstruck()
    except _StoppedEarly:
        tell("stopped", {"reason": struck[0]})
        return None


def _check(struck: Sequence[str]) -> None:
    """Where a signal comes in a destructor or a callback of C, Python only prints what its handler raises."""
    if struck:
        raise _StoppedEarly


def _ignored(_number: int, _frame: FrameType | None) -> None:
    """The end is bounded all the same (`stopping`)."""


def on_signals(handle: Callable[[int, FrameType | None], None]) -> None:
    """Installs a handler of SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _after_outages(begin: Callable[[], T], tell: TellBeginning) -> T:
    from lithify.api.wiring.system_clock import SystemClock

    clock, since_ms = SystemClock(), None

    def tell_outage(state: RetryCallState) -> None:
        nonlocal since_ms
        error = state.outcome.exception() if state.outcome else None
        if since_ms is None and isinstance(error, LithifyError):
            since_ms = clock.monotonic_ms()
            tell("trouble", {"error": f"{error.message}; waiting until it answers", "error_code": error.code})

    def recovering() -> T:
        nonlocal since_ms
        run = begin()
        if since_ms is not None:
            tell("recovered", {"what": WHAT, "duration_ms": clock.monotonic_ms() - since_ms})
        return run

    return Retrying(
        retry=retry_if_exception(_is_outage),
        wait=wait_random_exponential(multiplier=0.5, max=MAX_PAUSE_S),
        before_sleep=tell_outage,
        reraise=True,
    )(recovering)


def _is_outage(error: BaseException) -> bool:
    return isinstance(error, LithifyError) and error.is_outage
