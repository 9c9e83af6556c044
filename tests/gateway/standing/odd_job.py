"""A program that is run as a job, and notes in a journal that it runs: `odd_job.py MODE JOURNAL`.

It holds a lock for as long as it or a process of its own runs. Where another one has it, it notes an overlap.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

MODE, JOURNAL = sys.argv[-2:]


def note(what: str) -> None:
    with Path(JOURNAL).open("ab", buffering=0) as journal:
        journal.write(f"{time.monotonic_ns() // 1_000_000} {os.getpid()} {what}\n".encode())


def locked() -> int:
    lock = os.open(f"{JOURNAL}.lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        note("overlap")
    return lock


def works(*, ends: bool = True) -> None:
    def end(_number: int, _frame: object) -> None:
        note("term")
        if ends:
            sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        note("alive")
        time.sleep(0.05)


def forks() -> None:
    """Leaves behind a process in a session of its own that ignores SIGTERM."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            works(ends=False)
        os._exit(0)
    time.sleep(0.3)
    sys.exit(1)


def prints_garbage() -> None:
    out = sys.stdout.buffer
    out.write(b"\xff\xfe\x00 no text\n" + b"x" * 1_000_000 + b"\n" + b"[" * 100_000 + b"\n" + b'{"a":' * 50_000 + b"\n")
    out.write(b'{"number": NaN}\n{"rows": 7}\n')
    out.flush()
    sys.stderr.write('{"exit_code": 1, "message": 5, "code": []}\n')
    while True:
        out.write(os.urandom(100_000))


def fails() -> None:
    error = {"code": "Broker", "message": "no answer from kafka://me:s3cret@broker", "hint": None, "exit_code": 1}
    print(json.dumps({"event": "outage"}), json.dumps(error), "some library: warning", sep="\n", file=sys.stderr)
    sys.exit(1)


def reports() -> None:
    print(json.dumps({"topic": "orders", "records": 3}))


note("begin")
kept = locked()
{
    "works": works,
    "stubborn": lambda: works(ends=False),
    "forks": forks,
    "garbage": prints_garbage,
    "fails": fails,
    "reports": reports,
}[MODE]()
