"""What every program of the benchmarks prints, one JSON line for each row, and with `--publish` gives to the pages."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import figure_pages
from published import machine, publish

FOLDERS = frozenset({"--data", "--keep"})
"""Options that name a folder of this machine."""


class Show(Protocol):
    """Prints a row of figures. A name ends with the unit, such as `cpu_s`, `read_mb`, `records_per_s`."""

    def __call__(self, **row: Any) -> None: ...


def add_publish(parser: argparse.ArgumentParser) -> None:
    """The option of the programs whose figures the pages show."""
    parser.add_argument("--publish", action="store_true", help="also write the figures to docs/figures.json and pages")


@contextmanager
def shown(asked: argparse.Namespace) -> Iterator[Show]:
    """A way to print rows, which are published at the end if that was asked for and nothing failed."""
    rows: list[dict[str, Any]] = []
    load = os.getloadavg()[1]

    def show(**row: Any) -> None:
        rows.append(row)
        print(json.dumps(row), flush=True)

    yield show
    if getattr(asked, "publish", False):
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        publish(typed(sys.argv), {"date": date, "machine": machine(), "load": round(load), "rows": rows})
        figure_pages.write()


def typed(words: Sequence[str]) -> str:
    """The program and its arguments, without folders of this machine: what the figures are published under."""
    program, *given = words
    kept = [word for before, word in pairwise(["", *given]) if FOLDERS.isdisjoint({before, word})]
    return shlex.join([Path(program).name, *(word for word in kept if word != "--publish")])
