"""Calls that are repeated while a broker is away, as it is for a moment when a topic moves.

fails ──► pause ──► again ──► ... ──► after WARNING_AFTER_S a warning is logged, once ──► ... ──► `BrokerError`
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from lithify.errors import BrokerError, LithifyError, SubscriptionBusyError
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.waits.deadline import Deadline

PAUSE_S: Final = 0.5
"""Between two tries."""
WARNING_AFTER_S: Final = 5.0
LOG: Final = logging.getLogger(__name__)
"""Its warnings are for people: the command line prints them, and Python on stderr by default, also in tasks."""
T = TypeVar("T")


class Outage:
    """The time from a failed call on in which it is repeated, at most this number of seconds."""

    def __init__(self, seconds: float) -> None:
        self._deadline = Deadline(seconds)
        self._has_warned = False

    def pause(self, seconds: float, error: LithifyError, wait: Callable[[float], object]) -> None:
        """Waits until the next try. Raises `BrokerError` when there is to be none, and what `wait` raises."""
        try:
            left_s = self._deadline.left_s()
        except TimeoutError:
            raise BrokerError(f"{error.message}, for {self._deadline.seconds:.3g} s", hint=error.hint) from error
        if not self._has_warned and self._deadline.seconds - left_s >= WARNING_AFTER_S:
            self._has_warned = True
            text = error.message if error.message.isprintable() else ascii(error.message)  # brokers wrote parts of it
            LOG.warning("%s; trying again for %.0f s%s", text, left_s, error.hint and f" ({error.hint})")
        wait(min(seconds, left_s))


def retried(call: Callable[[], T], outage_s: float, wait: Callable[[float], object]) -> T:
    """What `call` returns. Raises `BrokerError` if it cannot be done for `outage_s`, and what `wait` raises."""
    outage: Outage | None = None
    while True:
        try:
            return call()
        except (TransientBrokerError, SubscriptionBusyError) as error:
            outage = outage or Outage(outage_s)
            outage.pause(PAUSE_S, error, wait)
