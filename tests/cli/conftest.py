"""The program as its users meet it: arguments and stdin in; exit code, stdout and stderr out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import lithify as package
from lithify.model.failure import LogFailure
from lithify.service.documents import failures_of, put_failures
from lithify.testing.oracle_engine import OracleEngine
from support.processes.in_process import Program
from support.processes.programs import PROGRAM


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


SEVERAL = r"""
import json, sys
from lithify.cli.main import run
for words in json.loads(sys.argv[1]):
    code = run(words)
    for stream in (sys.stdout, sys.stderr):
        print(f"\0{code}", end="\0", file=stream, flush=True)
"""


def in_one_process_of_their_own(
    *commands: Sequence[object], stdin: str = "", preexec_fn: Callable[[], object] | None = None, **environment: str
) -> list[subprocess.CompletedProcess[str]]:
    """The same of several command lines, one after the other, of which one reads stdin."""
    words = [list(map(str, command)) for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(words)],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        preexec_fn=preexec_fn,
        check=True,
    )
    out, err = done.stdout.split("\0"), done.stderr.split("\0")
    ended = zip(words, map(int, out[1::2]), out[:-1:2], err[:-1:2], strict=True)
    return [subprocess.CompletedProcess(*one) for one in ended]


@pytest.fixture
def lithify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program on an empty warehouse, in a terminal of 80 columns."""
    warehouse = tmp_path / "warehouse"
    monkeypatch.setenv("LITHIFY_WAREHOUSE", str(warehouse))
    monkeypatch.setenv("COLUMNS", "80")
    return Program(warehouse)


@pytest.fixture
def begins_chain() -> int:
    """How many versions the first append to a topic adds beside its own."""
    return 0


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch, lithify: Program) -> None:
    """A terminal in which no table is folded."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def plain_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds by the engine that is right by definition, for what is not about Spark."""
    monkeypatch.setattr("lithify.api.topic.spark_engine", lambda warehouse, *_: OracleEngine(warehouse.files))


@pytest.fixture(scope="session")
def own_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    return in_a_process_of_its_own


@pytest.fixture(scope="session")
def one_process() -> Callable[..., list[subprocess.CompletedProcess[str]]]:
    return in_one_process_of_their_own


@pytest.fixture(scope="session")
def masked() -> Callable[[str], str]:
    """Makes golden text of an output: sizes, times, durations and paths vary, widths with them.

    On a busy machine Spark's first task takes long enough to be told of.
    """

    def mask(text: str) -> str:
        text = re.sub(r"(?m)^(waiting for the first task to end:|the first task has ended,) .*\n", "", text)
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
