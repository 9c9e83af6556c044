"""The programs of a soak, cleaners and others: each in a session of its own, killed and started again.

cleaner-2.0.jsonl   its events until it is killed      cleaner-2.0.err   what it says otherwise
cleaner-2.1.jsonl   those of the next one with the same id
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.processes.programs import PROGRAM, end, running

ENDS_WITHIN_S = 10.0
"""After SIGTERM."""


@dataclass(slots=True)
class Life:
    """One process of a program, from its start to its end. Times are epoch ms."""

    name: str
    number: int
    log: Path
    started_ms: int
    killed_ms: int | None = None
    exit_code: int | None = None
    stopped_s: float | None = None
    """How long it took to end after SIGTERM."""

    def events(self) -> Iterator[dict[str, Any]]:
        """What it said; the last line of one that was killed may be cut."""
        lines = self.log.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                if self.killed_ms is None or number < len(lines):
                    raise


@dataclass(slots=True)
class Program:
    """One program through all its lives: what `lithify` is called with, and `--json`."""

    name: str
    command: Sequence[str]
    folder: Path
    env: Mapping[str, str]
    lives: list[Life] = field(default_factory=list)
    frozen: bool = False
    _process: subprocess.Popen[str] | None = None

    @property
    def life(self) -> Life:
        return self.lives[-1]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        base = self.folder / f"{self.name}.{len(self.lives)}"
        log, errors = base.with_suffix(f"{base.suffix}.jsonl"), base.with_suffix(f"{base.suffix}.err")
        with log.open("wb") as out, errors.open("wb") as err:
            self._process = subprocess.Popen(
                [*PROGRAM, *self.command, "--json"],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
                env=dict(self.env),
            )
        self.lives.append(Life(self.name, len(self.lives), log, _now_ms()))

    def kill(self) -> None:
        """All of it at once: the program, its JVM and its workers."""
        assert self._process is not None
        self.life.killed_ms = _now_ms()
        end(self._process)
        self._process.wait(timeout=ENDS_WITHIN_S)
        until_s = time.monotonic() + ENDS_WITHIN_S
        while running(self._process.pid):
            assert time.monotonic() < until_s, f"{self.name}: something of it still runs"
            end(self._process)
            time.sleep(0.05)
        self.life.exit_code = self._process.returncode

    def freeze(self) -> None:
        self.frozen = True
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)
        self.frozen = False

    def ask_to_stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def wait_stopped(self, asked_s: float) -> None:
        """Waits for its end; kills it where that takes much too long."""
        assert self._process is not None
        try:
            self._process.wait(timeout=3 * ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.life.stopped_s = time.monotonic() - asked_s
        self.life.exit_code = self._process.returncode

    def said(self) -> str:
        """The last of what it has said in this life."""
        return (self.life.log.read_text() + self.life.log.with_suffix(".err").read_text())[-700:]

    def memory(self) -> dict[str, int]:
        """Bytes in memory: of the program, and of all its processes together, shared ones counted once."""
        assert self._process is not None
        pids = list(running(self._process.pid))
        return {"program": _bytes(self._process.pid, "Rss"), "all": sum(_bytes(pid, "Pss") for pid in pids)}

    def end_for_good(self) -> None:
        """Whatever still runs of it."""
        if self._process is not None:
            end(self._process)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=ENDS_WITHIN_S)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        for pid in running(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def late_ends(lives: Sequence[Life]) -> list[str]:
    """Of those that were asked to stop: within 10 s, and with exit code 0."""
    asked = [life for life in lives if life.stopped_s is not None]
    late = [life for life in asked if life.stopped_s is not None and life.stopped_s > ENDS_WITHIN_S]
    return [f"{life.name} ended with {life.exit_code}" for life in asked if life.exit_code != 0] + [
        f"{life.name} took {life.stopped_s:.1f} s to stop" for life in late
    ]


def _now_ms() -> int:
    return time.time_ns() // 10**6


def _bytes(pid: int, what: str) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(f"{what}:"):
                return int(line.split()[1]) * 1024
    return 0
