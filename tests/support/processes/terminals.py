"""The program on a terminal of its own, and all that it draws there."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass

from support.processes.programs import PROGRAM


@dataclass(slots=True)
class Terminal:
    """A program on a terminal, and everything that it has drawn."""

    controller: int
    program: subprocess.Popen
    drawn: bytes = b""

    def wait_for(self, text, times=1):
        deadline = time.monotonic() + 60
        while self.drawn.count(text) < times:
            assert time.monotonic() < deadline, self.drawn
            self._read()

    def type(self, text):
        """As a person would."""
        os.write(self.controller, text)

    def ended(self):
        """Reads on until the program ends; returns the exit code."""
        while self._read():
            pass
        return self.program.wait(30)

    def interrupt(self):
        """Ctrl-C; returns the exit code."""
        self.program.send_signal(signal.SIGINT)
        return self.ended()

    def _read(self):
        if not select.select([self.controller], [], [], 60)[0]:
            return b""
        try:
            found = os.read(self.controller, 65536)
        except OSError:  # Linux says so when the last writer has gone
            return b""
        self.drawn += found
        return found


@contextmanager
def on_a_terminal(*arguments):
    controller, terminal = pty.openpty()
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    program = subprocess.Popen([*PROGRAM, *arguments], env={**os.environ, "TERM": "xterm", "LINES": "24"}, **streams)
    os.close(terminal)
    try:
        yield Terminal(controller, program)
    finally:
        program.kill()
        program.wait()
        os.close(controller)
