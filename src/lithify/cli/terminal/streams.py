"""Opens the program's standard streams that its parent has closed.

    0 1 2    opened on /dev/null where they are closed    ─► 3 4 ...    files that are opened from then on

The next file that is opened, a segment or the catalog, would get the number of a closed stream, and output of
a library or of Spark's process would be written into it.
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
