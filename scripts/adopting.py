"""Runs a command, and adopts what its processes leave behind, so that the processor time of these is counted as well.

    scripts/adopting.py COMMAND...

Spark's JVM ends after the Python that started it. Linux gives such a process to this one, which reads its end: so its
time is in what `wait4` tells of this process.

SIGTERM is an interrupt for the command. SIGINT is left to it: a terminal sends that to both.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
LEFT_END_WITHIN_S = 3.0
"""A JVM that has lost its program ends in a second. What takes longer is not counted."""


def main(command: Sequence[str]) -> int:
    """The exit code of the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT))
    status: int | None = None
    while status is None:
        pid, ended = os.wait()
        if pid == process.pid:
            status = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    until_s = time.monotonic() + LEFT_END_WITHIN_S
    with suppress(ChildProcessError):  # none is left
        while time.monotonic() < until_s:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
