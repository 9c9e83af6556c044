"""The three streams of the program, also where whoever started it has closed some.

    0 1 2    taken by /dev/null where they are closed    ─► 3 4 ...    files that are opened from then on

A closed one leaves its number to the next file that is opened, a segment or the catalog, and what a library or
Spark's process prints would land in it.
"""

from __future__ import annotations

import os
import sys

_STDIN, _STDOUT, _STDERR = range(3)


def take_closed() -> None:
    """Nothing comes from a stdin that is closed, and whoever closes stdout or stderr wants none of it."""
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(_STDOUT, "w")
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w")
