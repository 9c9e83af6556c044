"""Compares Lithify with other ways of keeping the last record of each key, on the same files: `just bench`.

    python bench/run.py [short|full|smoke] [--data FOLDER] [--case NAME]... [--way NAME]... [--records N] [--turns N]
                        [--to FOLDER]

`short` takes less than 15 minutes on two idle cores, `full` less than two hours. They write docs/figures.json and all
that is made of it: docs/understand/benchmarks.md, its picture and the README's table. `smoke` takes a minute and shows
that all of it works: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import figure_pages
from cases import BASE, Case, cases
from figures import OURS
from published import BENCH, DOCS, Measurement, machine, publish, published, where
from turns import in_turns, processes
from ways import WAYS


@dataclass(frozen=True, slots=True)
class Size:
    """How large the base is, and how often each way runs that is fast enough to run everywhere, and the others."""

    records: int
    turns: int
    slow_turns: int


SIZES = {"smoke": Size(20_000, 1, 1), "short": Size(4_000_000, 3, 1), "full": Size(20_000_000, 5, 1)}
SLOW_CASES = (BASE, "1%-new", "0.1%-new")
"""Those on which ways run that are not run everywhere."""


def _command(words: Sequence[str]) -> str:
    """What was typed, without folders of this machine."""
    kept = [word for before, word in pairwise(["", *words]) if {before, word}.isdisjoint({"--data", "--to"})]
    return shlex.join(["just", "bench", *kept])


def compared(
    size: Size, every: Sequence[Case], names: Sequence[str], left_out: dict[str, str], data: Path
) -> list[dict[str, Any]]:
    """The rows of all turns: those of fast ways on all cases, then those of the others, beside ours, on some.

    A way whose process ends is added to those that are left out.
    """
    fast = [name for name in names if WAYS[name].everywhere]
    slow = [name for name in names if not WAYS[name].everywhere]
    rows = _shown(fast, every, range(size.turns), left_out, data)
    if slow:
        some = [case for case in every if case.name in SLOW_CASES]
        rows += _shown([OURS, *slow], some, range(size.turns, size.turns + size.slow_turns), left_out, data)
    return rows


def _shown(
    names: Sequence[str], every: Sequence[Case], turns: range, left_out: dict[str, str], data: Path
) -> list[dict[str, Any]]:
    """The rows of some ways, which are also printed as they come."""
    rows = []
    with processes(names) as ways, tempfile.TemporaryDirectory(dir=data) as scratch:
        for case in every:
            for row in in_turns(case, case.log(data), ways, turns, Path(scratch)):
                print(json.dumps(row), file=sys.stderr, flush=True)
                rows.append(row)
            for name in (name for name in names if name not in ways):
                left_out.setdefault(name, f"its process ended in the case {case.name}")
    return rows


def in_place(before: Measurement | None, found: Measurement) -> Measurement:
    """What was published before, with cases that were measured anew, and when and on what each of these was."""
    if before is None:
        return found
    apart = f"`{found['command']}`, {where(found)}"
    anew = {case["name"]: {**case, "apart": apart} for case in found["cases"]}
    kept = {case["name"]: case for case in before["cases"]}
    rows = [row for row in before["rows"] if row["case"] not in anew]
    return {**before, "cases": list((kept | anew).values()), "rows": [*rows, *found["rows"]]}


def _at_least_one(text: str) -> int:
    """Raises `ArgumentTypeError`."""
    if not text.isdecimal() or (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", nargs="?", choices=SIZES, default="short")
    parser.add_argument("--data", type=Path, help="a folder for the logs, which are kept; else a temporary one")
    parser.add_argument(
        "--case",
        action="append",
        choices=[case.name for case in cases(1000)],
        help="only these, and replace only these on the page; repeatable",
    )
    parser.add_argument("--way", action="append", choices=WAYS, help="only these, and `lithify`; repeatable")
    parser.add_argument("--records", type=_at_least_one, help="of the base")
    parser.add_argument("--turns", type=_at_least_one, help="counted turns of each way")
    parser.add_argument("--to", type=Path, help="a folder for the page; docs, but for `smoke` none")
    asked = parser.parse_args()
    size = SIZES[asked.size]
    turns, slow_turns = (asked.turns or size.turns), (asked.turns or size.slow_turns)
    size = Size(asked.records or size.records, turns, slow_turns)
    every = [case for case in cases(size.records) if not asked.case or case.name in asked.case]
    wanted = [name for name in WAYS if not asked.way or name in (*asked.way, OURS)]
    left_out = {name: why for name in wanted if (why := WAYS[name].missing())}
    for name, why in left_out.items():
        print(f"left out: {name}: {why}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(asked.data or temporary)
        data.mkdir(parents=True, exist_ok=True)
        rows = compared(size, every, [name for name in wanted if name not in left_out], left_out, data)
    result = {
        "command": _command(sys.argv[1:]),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        "left_out": left_out,
        "cases": [{"name": case.name, "text": case.text, "records": case.records} for case in every],
        "rows": rows,
    }
    if asked.to or asked.size != "smoke":
        folder = (asked.to or DOCS).resolve()
        publish(BENCH, in_place(published(folder).get(BENCH), result) if asked.case else result, folder)
        figure_pages.write(folder)


if __name__ == "__main__":
    main()
