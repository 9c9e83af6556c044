"""Python's collector of reference cycles, where many records are made that have none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_SWITCH = Lock()


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Turns off the cyclic garbage collector, which would scan all records of a growing table repeatedly.

    Of several threads the one that has turned it off turns it on again, also for the others: it never stays off.
    """
    with _SWITCH:
        was_on = gc.isenabled()
        gc.disable()
    try:
        yield
    finally:
        with _SWITCH:
            if was_on:
                gc.enable()
