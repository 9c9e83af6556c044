"""Stops a process where it is in nobody's way."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

TRIES_AGAIN_S = 0.1


def freeze(process: subprocess.Popen[bytes], catalog: Path) -> None:
    """Not while it holds a lock of the SQLite file `catalog` that all share: one that reads lets nobody commit either.

    `SIGCONT` lets it go on.
    """
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # it runs on for a moment
        with closing(sqlite3.connect(catalog, timeout=1, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                process.send_signal(signal.SIGCONT)
                time.sleep(TRIES_AGAIN_S)
            else:
                connection.execute("ROLLBACK")
                return
