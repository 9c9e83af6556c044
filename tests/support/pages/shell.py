"""A shell in which `lithify` is this process: commands of a page share its imports and its session of Spark.

    shell ── starts `lithify`, a small program ── its arguments, stdin, stdout, stderr ──► here: cli.main.run
      ▲                                                                                       │
      └──────────────────────────────── its exit code ◄───────────────────────────────────────┘

What runs until it is interrupted is a process of its own, which gets a Ctrl-C once it has printed a word.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO, cast

from lithify.cli.invocation import INTERRUPTED
from lithify.cli.main import run
from support.processes.in_process import signal_handlers, streams_replaced
from support.processes.programs import end

Program = Callable[[Sequence[str]], int]
BIN = Path(sys.executable).parent
ENDS_WITHIN_S = 120.0
ENDLESS = {
    r"lithify consume .*--follow": ("", 3.0),  # it prints nothing while nothing is appended
    r"lithify cleaner run(?!.*--once)": ("started", 60.0),
    r"lithify (kafka|pulsar) ingest(?s:.)*--continuous": ("waiting", 60.0),
}
"""What does not end by itself: a word that it prints before it is interrupted, and the seconds that this may take."""
SERVED = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as process:
    process.connect({address!r})
    socket.send_fds(process, [json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]).encode()], [0, 1, 2])
    sys.exit(int(process.recv(16)))
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, with all that it printed."""

    code: int
    printed: str


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A program that a shell has started: one of a pipeline may be the first to ask, and the last to have input."""

    connection: socket.socket
    name: str
    arguments: list[str]
    streams: list[TextIO]

    @classmethod
    def accepted(cls, listener: socket.socket) -> _Request:
        connection, _ = listener.accept()
        request, descriptors, *_ = socket.recv_fds(connection, 1 << 20, 3)
        name, *arguments = json.loads(request)
        opened = [os.fdopen(fd, mode, encoding="utf-8") for fd, mode in zip(descriptors, "rww", strict=True)]
        return cls(connection, name, arguments, cast("list[TextIO]", opened))

    def has_input(self) -> bool:
        """Whether its input has something, or has ended."""
        return bool(select.select([self.streams[0]], [], [], 0)[0])

    def close_streams(self) -> None:
        for stream in self.streams:
            with suppress(BrokenPipeError):
                stream.close()

    def close(self) -> None:
        self.close_streams()
        self.connection.close()


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands in the current folder. `programs` are functions of arguments that return exit codes, by name."""

    listener: socket.socket
    path: str
    programs: Mapping[str, Program]

    def __call__(self, command: str) -> Ended:
        with tempfile.TemporaryFile("w+") as printed:
            for pattern, (word, seconds) in ENDLESS.items():
                if re.search(pattern, command):
                    return Ended(self._interrupted(command, printed, word, seconds), _read(printed))
            return Ended(self._served(command, printed), _read(printed))

    def _served(self, command: str, printed: IO[str]) -> int:
        process = _started(command, self.path, printed)
        until_s = time.monotonic() + ENDS_WITHIN_S
        asked: list[_Request] = []
        try:
            while process.poll() is None:
                assert time.monotonic() < until_s, f"it does not end: {command}"
                if select.select([self.listener], [], [], 0.005)[0]:
                    asked.append(_Request.accepted(self.listener))
                if (ready := next(filter(_Request.has_input, asked), None)) is not None:
                    asked.remove(ready)
                    self._serve(ready)
        finally:
            for request in asked:
                request.close()
            end(process)
            process.wait()
        return process.returncode

    def _serve(self, request: _Request) -> None:
        try:
            with streams_replaced(*request.streams), signal_handlers():
                code = self.programs[request.name](request.arguments)
        finally:
            request.close_streams()
        request.connection.send(str(code).encode())
        request.close()

    def _interrupted(self, command: str, printed: IO[str], word: str, seconds: float) -> int:
        """0 if it ends because of Ctrl-C, as its user wants it to; on a busy machine perhaps before it has begun."""
        process = _started(f"exec {command}", self.path.partition(os.pathsep)[2], printed)
        until_s = time.monotonic() + seconds
        try:
            while process.poll() is None and time.monotonic() < until_s and not (word and word in _read(printed)):
                time.sleep(0.05)
            assert not word or word in _read(printed), _read(printed)
            process.send_signal(signal.SIGINT)
            code = process.wait(ENDS_WITHIN_S)
        finally:
            end(process)
            process.wait()
        return 0 if code in (INTERRUPTED, -signal.SIGINT) else code


@contextmanager
def a_shell(tools: Mapping[str, Program] | None = None) -> Iterator[Shell]:
    """With `lithify`, and `tools` of other systems."""
    programs = {"lithify": run, **(tools or {})}
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        address = f"{folder}/socket"
        listener.bind(address)
        listener.listen()
        for name in programs:
            file = Path(folder) / name
            file.write_text(SERVED.format(python=sys.executable, address=address))
            file.chmod(0o700)
        yield Shell(listener, os.pathsep.join([folder, str(BIN), os.environ["PATH"]]), programs)


def _started(command: str, path: str, printed: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["/bin/bash", "-o", "pipefail", "-c", command],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        text=True,
        start_new_session=True,
    )


def _read(file: IO[str]) -> str:
    """All that is in it, wherever programs write next."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()
