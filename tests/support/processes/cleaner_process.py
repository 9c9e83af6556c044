"""`lithify cleaner run` or `lithify replica run` as a process of its own, with its events as they come."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

WAIT_S = 240.0
"""For anything that a cleaner does; a machine with other work on it starts Spark slowly."""


class CleanerProcess:
    """Started at once, in a session of its own, so that a signal to it reaches no test."""

    noun = "cleaner"

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lithify", self.noun, "run", "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=None if environment is None else {**os.environ, **environment},
        )
        self.events: list[dict[str, Any]] = []
        self._new: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> CleanerProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.signal_all(signal.SIGKILL)
        self.process.wait(WAIT_S)
        for thread in self._threads:
            thread.join(WAIT_S)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def said(self) -> str:
        """What is on stderr so far."""
        return "".join(self._errors)

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event of those to come that is wanted."""
        ends = time.monotonic() + WAIT_S
        while True:
            try:
                event = self._new.get(timeout=max(0.01, ends - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not in {WAIT_S} s; events: {self.events[-5:]}, stderr: {self.said}") from None
            if event is None:
                raise AssertionError(f"it ended; events: {self.events[-5:]}, stderr: {self.said}")
            if wanted(event):
                return event

    def wait_for_kind(self, kind: str, topic: str | None = None) -> dict[str, Any]:
        return self.wait_for(lambda event: event["event"] == kind and topic in (None, event["topic"]))

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    def signal(self, number: signal.Signals) -> None:
        """To the cleaner alone, as a service manager does that knows its main process."""
        self.process.send_signal(number)

    def signal_all(self, number: signal.Signals) -> None:
        """To it and to all that it has started."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return

    def ended(self) -> int:
        """Its exit code, once it has ended and everything that it said was read."""
        code = self.process.wait(WAIT_S)
        for thread in self._threads:
            thread.join(WAIT_S)
        return code

    def _read_events(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            self._new.put(event)
        self._new.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line)


class ReplicaProcess(CleanerProcess):
    """A daemon that keeps replicas up."""

    noun = "replica"
