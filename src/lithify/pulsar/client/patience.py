"""Calls that are repeated while a broker is away, as it is for a moment when a topic moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from lithify.errors import BrokerError, SubscriptionBusyError
from lithify.pulsar.client.refusals import TransientBrokerError
from lithify.waits.deadline import Deadline

PAUSE_S: Final = 0.5
"""Between two tries."""
T = TypeVar("T")


def patiently(call: Callable[[], T], outage_s: float, wait: Callable[[float], None]) -> T:
    """What `call` returns. Raises `BrokerError` if it cannot be done for `outage_s`, and what `wait` raises."""
    outage: Deadline | None = None
    while True:
        try:
            return call()
        except (TransientBrokerError, SubscriptionBusyError) as error:
            outage = outage or Deadline(outage_s)
            try:
                wait(min(PAUSE_S, outage.left_s()))
            except TimeoutError:
                raise BrokerError(f"{error.message}, for {outage.seconds:.3g} s", hint=error.hint) from error
