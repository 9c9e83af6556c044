"""Gateways as processes, and the journals that their jobs write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from support.servers.tcp_proxy import wait_until

HERE = Path(__file__).parent
WAIT_S = 60.0
LEASE_MS = 2_000
ODD_JOB = str(HERE / "odd_job.py")


class GatewayProcess:
    """Started at once, in a session of its own."""

    def __init__(self, url: str, name: str = "g", *program: str, lease_ms: int = LEASE_MS) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "a_gateway.py"), url, name, str(lease_ms), *(program or (ODD_JOB,))],
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        self.events: list[dict[str, Any]] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> GatewayProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code

    def told(self, kind: str, job: str | None = None) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind and job in (None, event["job"])]

    def wait_for(self, kind: str, times: int = 1) -> dict[str, Any]:
        waited(lambda: len(self.told(kind)) >= times)
        return self.told(kind)[times - 1]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))


class Journal:
    """What the processes of a job have noted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def notes(self) -> list[tuple[int, int, str]]:
        """Time in ms, process, and what."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [(int(at), int(pid), what) for at, pid, what in (line.split() for line in lines)]

    def times(self, what: str) -> list[int]:
        return [at for at, _, noted in self.notes() if noted == what]

    def pids(self) -> list[int]:
        """Of the processes that were begun."""
        return [pid for _, pid, what in self.notes() if what == "begin"]

    def check_alone(self) -> None:
        """No process began while another one, or one that it had left behind, was running."""
        assert self.times("overlap") == []

    def is_silent(self) -> bool:
        """Whether nothing runs any more: no process of the journal is there, and no other holds its lock."""
        return not any(is_running(pid) for pid in {pid for _, pid, _ in self.notes()})


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def waited(for_what: Callable[[], object], within_s: float = WAIT_S) -> None:
    wait_until(for_what, "it does not come", within_s)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
