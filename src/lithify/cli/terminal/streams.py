"""The three streams of the program, also if its parent has closed some.

    0 1 2    taken by /dev/null where they are closed    ─► 3 4 ...    files that are opened from then on

A closed one leaves its number to the next file that is opened, a segment or the catalog, and what a library or
Spark's process prints would land in it.
"""

from __future__ import annotations

import os
import sys

_STDIN, _STDOUT, _STDERR = range(3)


def take_closed() -> None:
    """A closed stdin reads as empty, and output to a closed stdout or stderr is discarded."""
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(_STDOUT, "w")
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w")
