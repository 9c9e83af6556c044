"""The program run in this process: arguments and stdin in; exit code, stdout and stderr out."""

from __future__ import annotations

import io
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from lithify.cli.main import run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Stdout as JSON, a value per line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """Stdout as the one JSON object that it has to be."""
        (value,) = self.lines
        return value


@dataclass(frozen=True, slots=True)
class Program:
    """Runs the program in this process, on one warehouse."""

    warehouse: Path

    def __call__(self, *arguments: object, stdin: str | bytes = b"", code: int = 0) -> Outcome:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with _streams(data) as (out, err), signal_handlers():
            found = run([str(argument) for argument in arguments])
        outcome = Outcome(found, out(), err())
        assert outcome.code == code, outcome
        return outcome

    def error(self, *arguments: object, stdin: str | bytes = b"", code: int = 2) -> str:
        """The one line that a failing command says, without its code; nothing may be on stdout."""
        outcome = self(*arguments, stdin=stdin, code=code)
        (line,) = outcome.err.splitlines()
        assert outcome.out == ""
        error = re.fullmatch(r"error\[\w+\]: (.*)", line)
        assert error is not None, line
        return error[1]


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[Callable[[], str], Callable[[], str]]]:
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n") for data in (stdin, b"", b"")]

    def written(stream: io.TextIOWrapper) -> Callable[[], str]:
        def text() -> str:
            stream.flush()
            return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]

        return text

    with streams_replaced(*streams):
        yield written(streams[1]), written(streams[2])


@contextmanager
def streams_replaced(*streams: TextIO) -> Iterator[None]:
    """Stdin, stdout and stderr."""
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def signal_handlers() -> Iterator[None]:
    """Those of before at the end: daemons and copies install their own, which would swallow later tests' interrupts."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
