"""One run of a job: its process, behind a guard that ends it in time (`guard.py`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO

from lithify.daemons.supervisor import started
from lithify.gateway.standing import guard
from lithify.gateway.standing.output import JobOutput

TERMINATED_MS = 10_000
"""From SIGTERM to SIGKILL: all verbs end within that time."""
LOST_MS = 2_000
"""The same where another gateway may run the job by now."""
DRAINED_S = 1.0
LATE_MS = 3_000
"""A guard that has not ended its command so long after the end of its time is killed too."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long before the end of the lease a run gets SIGTERM: both times before it; and SIGKILL: the second."""

    grace_ms: int
    margin_ms: int

    @classmethod
    def of(cls, lease_ms: int) -> Bounds:
        """A third of a lease for an orderly end, and a little for the kill itself."""
        return cls(min(TERMINATED_MS, lease_ms // 3), min(1_000, lease_ms // 10))

    @property
    def before_ms(self) -> int:
        """From SIGTERM to the end of the lease."""
        return self.grace_ms + self.margin_ms


class Child:
    """A process, from its start to its exit code. For one thread; `stop` and `kill` are for any."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], bounds: Bounds, until_ms: int, output: JobOutput
    ) -> None:
        """Starts it. Raises `OSError`."""
        numbers = map(str, (bounds.grace_ms, bounds.margin_ms, until_ms))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(guard.__file__)), *numbers, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=True,
            bufsize=0,
        )
        self._stdin, *streams = _pipes(self._process)
        os.set_blocking(self._stdin.fileno(), False)
        self.until_ms = until_ms
        """The end of the lease, as the guard knows it."""
        self._late_ms: int | None = None
        output.begin()
        self._readers: list[tuple[Thread, IO[bytes]]] = []
        try:
            for stream, errors in zip(streams, (False, True), strict=True):
                follow = partial(output.follow, partial(os.read, stream.fileno()), errors=errors)
                self._readers.append((started(follow), stream))
        except RuntimeError as error:  # the machine has no thread left: without readers it could not run on
            self.kill()
            for reader, _ in self._readers:
                reader.join(DRAINED_S)
            with self._process:  # which closes the pipes
                raise OSError(str(error)) from None

    @property
    def pid(self) -> int:
        """Of the guard, which is the leader of a session of its own."""
        return self._process.pid

    def until(self, until_ms: int) -> None:
        """The lease now ends then."""
        if until_ms > self.until_ms:
            self.until_ms = until_ms
            self._say(f"until {until_ms}")

    def stop(self, within_ms: int, now_ms: int) -> None:
        """Asks for its end, and has it killed after this time. The first request counts, and shorter ones after it."""
        late_ms = now_ms + within_ms + LATE_MS
        if self._late_ms is None or late_ms < self._late_ms:
            self._late_ms = late_ms
            self._say(f"stop {within_ms}")

    def ended(self, now_ms: int) -> int | None:
        """Its exit code, once all its processes have ended; kills a guard that is late."""
        if min(self._late_ms or self.until_ms, self.until_ms) < now_ms:
            self.kill()
        done = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if done is None:
            return None
        if done.si_code != os.CLD_EXITED:  # a guard that was killed has left processes behind
            guard.kill(guard.processes(session=self.pid))
        code = self._process.wait()
        for reader, stream in self._readers:
            reader.join(DRAINED_S)
            if not reader.is_alive():  # else its file would be another one's by then
                stream.close()
        self._stdin.close()
        return code if code >= 0 else 128 - code

    def kill(self) -> None:
        """Kills all its processes at once, the guard too."""
        own = self.pid
        guard.kill([pid for pid in {*guard.processes(session=own), *guard.processes(below=own)} if pid != own])
        guard.kill([own])

    def _say(self, text: str) -> None:
        with suppress(OSError, ValueError):  # it has ended; one that is frozen, and whose pipe is full, needs no more
            self._stdin.write(f"{text}\n".encode())


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert process.stdin and process.stdout and process.stderr
    return process.stdin, process.stdout, process.stderr
