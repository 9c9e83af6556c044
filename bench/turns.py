"""Runs ways in turns on the same logs, and says what each took.

    one turn that does not count   a b c    slow ways: on the first new segment only
    turn 0                         c b a    here the kept records are compared
    turn 1                         a b c    ...

A way keeps its process, and so stays warm; all others wait meanwhile.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cases import Case, Log
from process_tree import measured
from ways import WAYS

HERE = Path(__file__).resolve().parent


class WayEndedError(Exception):
    """The process of a way has ended; its own output says why."""


class WayProcess:
    """A way in a process of its own; see `way_process`."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, str(HERE / "way_process.py"), name]
        paths = [str(HERE.parent / "src"), str(HERE.parent / "tests")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        self.id = self._process.pid

    def ask(self, **told: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            print(json.dumps(told), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise WayEndedError(f"its process ended with {self._process.wait()}")
        figures: dict[str, Any] = json.loads(answer)
        return figures

    def end(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


@contextmanager
def processes(names: Sequence[str]) -> Iterator[dict[str, WayProcess]]:
    """Each way in its process, until the end."""
    with ExitStack() as stack:
        ways = {}
        for name in names:
            ways[name] = WayProcess(name)
            stack.callback(ways[name].end)
        yield ways


def in_turns(
    case: Case, log: Log, ways: dict[str, WayProcess], turns: range, scratch: Path
) -> Iterator[dict[str, Any]]:
    """A row of figures for each way and turn, by the numbers of `turns`.

    A way whose process ends is taken out of `ways`: the others go on. Ends the program where two ways keep different
    records.
    """
    names = [name for name in ways if WAYS[name].fits(case)]
    kept: dict[str, dict[str, Any]] = {}
    for turn in (turns.start - 1, *turns):
        for name in names if turn % 2 else names[::-1]:
            if name not in ways:
                continue
            out = scratch / f"{name}-{turn}"
            is_short = turn < turns.start and not WAYS[name].everywhere
            try:
                row = _turn(ways[name], replace(log, dirty=log.dirty[:1]) if is_short else log, out)
                if turn == turns.start:
                    kept[name] = ways[name].ask(do="kept")
            except WayEndedError as error:
                print(f"{name} is left out from {case.name} on: {error}", file=sys.stderr)
                del ways[name]
            else:
                if turn >= turns.start:
                    yield {"case": case.name, "way": name, "turn": turn, **row}
            finally:
                shutil.rmtree(out, ignore_errors=True)
    if any(
        len({left[name] for left in kept.values() if name in left}) > 1 for name in ("records", "digest", "tombstones")
    ):
        raise SystemExit(f"{case.name}: the ways do not keep the same records: {json.dumps(kept)}")


def _turn(way: WayProcess, log: Log, out: Path) -> dict[str, Any]:
    """What one run takes."""
    way.ask(do="prepare", log=b64encode(pickle.dumps(log)).decode(), out=str(out))
    os.sync()
    before = _bytes_in(out)
    with measured(way.id) as used:
        figures = way.ask(do="run")
    grown = _bytes_in(out) - before
    files = {"files_bytes": grown} if grown else {}  # brokers have theirs elsewhere
    return {**figures, **files, **asdict(used)}


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
