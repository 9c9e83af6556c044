"""The program as its users meet it: arguments and stdin in; exit code, stdout and stderr out."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import lithify as package
from lithify.cli.main import run
from lithify.model.failure import LogFailure
from lithify.service.documents import failures_of, put_failures
from support.engines.oracle import OracleEngine
from support.processes.programs import PROGRAM


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
        with _streams(data) as (out, err):
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


def in_a_process_of_its_own(
    *arguments: object, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The program where it matters what is imported when: PyIceberg reads the environment then."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[Callable[[], str], Callable[[], str]]]:
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n") for data in (stdin, b"", b"")]
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams

    def written(stream: io.TextIOWrapper) -> Callable[[], str]:
        def text() -> str:
            stream.flush()
            return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]

        return text

    try:
        yield written(streams[1]), written(streams[2])
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@pytest.fixture
def lithify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program on an empty warehouse, in a terminal of 80 columns."""
    warehouse = tmp_path / "warehouse"
    monkeypatch.setenv("LITHIFY_WAREHOUSE", str(warehouse))
    monkeypatch.setenv("COLUMNS", "80")
    return Program(warehouse)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch, lithify: Program) -> None:
    """A terminal in which no table is folded."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def plain_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds by the engine that is right by definition, for what is not about Spark."""
    monkeypatch.setattr("lithify.api.topic.spark_engine", lambda warehouse, _choice: OracleEngine(warehouse.files))


@pytest.fixture(scope="session")
def own_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    return in_a_process_of_its_own


@pytest.fixture(scope="session")
def masked() -> Callable[[str], str]:
    """Makes golden text of an output: sizes, times, durations and paths vary, widths with them."""

    def mask(text: str) -> str:
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+Z)?", "TIME", text)
        text = re.sub(r"[\d.]+ (B|[KMG]iB)\b", "SIZE", text)
        text = re.sub(r"\d+ min( \d+ s)?|[\d.]+ (ms|s)\b", "SPENT", text)
        return re.sub(r"(?<=\S)  +", "  ", text)

    return mask


@pytest.fixture
def failing(lithify: Program) -> Callable[[str, Mapping[int, LogFailure]], None]:
    """Remembers failures of logs of a topic, as cleaners do."""

    def fail(topic: str, failures: Mapping[int, LogFailure]) -> None:
        found = package.open(str(lithify.warehouse)).topic(topic)
        store, state = found.warehouse.store, found.state()
        put_failures(store, state, {**failures_of(store, state), **failures})

    return fail
