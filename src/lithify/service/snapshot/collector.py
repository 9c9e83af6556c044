"""Python's collector of reference cycles, where many records are made that have none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Turns off the cyclic garbage collector, which would scan all records of a growing table repeatedly.

    Of several threads those that have found it on turn it on again, also for the others, and no other one turns it
    off: it never remains off. Nor does it after an interrupt (Ctrl-C), which Python raises behind any call.
    """
    if not gc.isenabled():
        yield
        return
    try:
        gc.disable()
        yield
    finally:
        gc.enable()
