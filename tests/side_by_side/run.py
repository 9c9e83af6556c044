"""Two commits side by side: the same command lines, typed into both, and into both in turn on one warehouse.

    PYTHONPATH=tests python -m side_by_side.run COMMIT            `just side-by-side COMMIT`
    PYTHONPATH=tests python -m side_by_side.run COMMIT --walks 20 --spark

For what changes the code and not what it does. Each walk (`walks.py`) is done three times:

    before ──► warehouse 1      every output, exit code and data file
    now    ──► warehouse 2      is the same in all three, and so is
    either ──► warehouse 3      what both read at the end of the third

Then every command line of the documents is typed into both, with `--json` too where it can be. With `--spark`, rounds
and `verify` run on Spark, and a Spark stream that one has begun is continued by the other. What differs is printed; the
exit code is 1 if anything did. What has to differ from run to run (durations, paths, ids of Iceberg) is masked.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from side_by_side.walks import LOOKS, START_MS, TOPIC, Step, walk
from support.pages.text import PAGES, text_of
from test_docs_commands import commands, typed_in

ROOT = Path(__file__).resolve().parents[2]
STEPS = 12
SECONDS = 60
"""A command may take so long; then it is interrupted, as by Ctrl-C."""
SHOWN = 30
"""Lines of a difference that are printed."""
LEFT_OUT = {"cleaner", "doctor", "demo", "completion", "--follow", "--continuous"}
"""In documents: what goes on until it is stopped, or tells of the machine and not of a warehouse."""

MASKS = (
    (re.compile(r'("\w*(?:_seconds|seconds|_took_ms|duration_ms)": ?)[\d.e-]+'), r"\1N"),
    (re.compile(r'("modified_ms": ?)\d+'), r"\1N"),  # the disk has a clock of its own
    (re.compile(r"\b0{6}[0-9a-f]{6}\b"), "ID"),  # counted, so that a round that takes one less has other ones
    (re.compile(r'("(?:metadata|waiting)_bytes": ?)\d+'), r"\1N"),  # Iceberg's own files are compressed, ids and all
    (re.compile(r"\d[\d.]* (?:B|KiB)(?= of metadata| wait| that no version)"), "SIZE"),
    (re.compile(r"\b\d[\d.,]* (?:ms|s|min)\b"), "TIME"),
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"0\d{4}-UUID"), "UUID"),
    (re.compile(r"-[0-9a-f]{12}(-\d+\.parquet)"), r"-TASK\1"),
    (re.compile(rf"\b{re.escape(socket.gethostname())}-\d+"), "PROCESS"),
)


class Checkout:
    """The program of one checkout, in a process of its own."""

    def __init__(self, root: Path, *options: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{root}/src:{root}/tests",
            "COLUMNS": "400",
            "PYSPARK_PYTHON": sys.executable,
        }
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), *options],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def do(self, folder: Path, number: int, step: Step) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        arguments = [word.replace("/srv/", f"{folder}/srv/") for word in step.arguments]  # where documents have places
        command = {"now_ms": step.now_ms, "step": number, "folder": str(folder), "arguments": arguments}
        print(json.dumps({**command, "stdin": step.stdin, "seconds": SECONDS}), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return {name: masked(str(value), folder) for name, value in answer.items()}

    def close(self) -> None:
        self._process.communicate(timeout=60)


def masked(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "FOLDER")
    for mask, shown in MASKS:
        text = mask.sub(shown, text)
    return text


def data_files(folder: Path) -> str:
    """Every segment with its size. Iceberg's own files have names and times of the machine."""
    files = sorted(path for path in folder.rglob("*.parquet"))
    return masked("\n".join(f"{path.relative_to(folder)} {path.stat().st_size}" for path in files), folder)


class Comparison:
    """What was compared, and what differed: each change of the same lines once."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.changes = Counter[str]()

    def same(self, what: str, expected: object, found: object) -> None:
        self.counts[what.partition(":")[0]] += 1
        if expected == found:
            return
        lines = [*difflib.unified_diff(lines_of(expected), lines_of(found), "before", "now", lineterm="", n=0)][2:]
        changed = [re.sub(r"\d+", "#", line.strip(" ,")) for line in lines if not line.startswith("@")]
        change = "\n".join([*changed[:SHOWN], *(["..."] if len(changed) > SHOWN else [])])
        if change not in self.changes:
            print(f"\n{what}", change, sep="\n", flush=True)
        self.changes[change] += 1


def lines_of(answer: object) -> list[str]:
    """An answer's lines, those of JSON with a line for each value."""
    if isinstance(answer, dict):
        return [f"{name}: {line}" for name, text in answer.items() for line in lines_of(text)]
    lines = []
    for line in str(answer).splitlines():
        try:
            lines += json.dumps(json.loads(line), indent=1).splitlines()
        except ValueError:
            lines.append(line)
    return lines


def compare_walk(seed: int, before: Checkout, now: Checkout, folder: Path, seen: Comparison) -> Counter[str]:
    """Does one walk three times; how many commands of each verb ended well."""
    steps = [*walk(seed, STEPS)]
    toss = random.Random(seed)
    places = [folder / name for name in ("was", "now", "all")]
    good = Counter[str]()
    for number, step in enumerate(steps):
        expected = before.do(places[0], number, step)
        line = f"walk {seed}, {number}: {' '.join(step.arguments)}"
        seen.same(f"walks: {line}", expected, now.do(places[1], number, step))
        seen.same(f"in turn: {line}", expected, toss.choice((before, now)).do(places[2], number, step))
        good.update([step.arguments[0]] if expected["code"] == "0" else [])
    files = data_files(places[0])
    seen.same(f"files: of walk {seed}", files, data_files(places[1]))
    seen.same(f"files: of walk {seed}, in turn", files, data_files(places[2]))
    for number, look in enumerate(LOOKS, len(steps)):
        step = Step(steps[-1].now_ms, look)
        seen.same(f"looks: {seed} {' '.join(look)}", *(one.do(places[2], number, step) for one in (before, now)))
    return good


def compare_pages(before: Checkout, now: Checkout, folder: Path, left_out: set[str], seen: Comparison) -> None:
    """Types the commands of every page into both, on warehouses with a topic of the pages' name."""
    for page in PAGES:
        steps = [*walk(1, 4)]
        for number, arguments in enumerate(one for block in typed_in(text_of(page)) for one in commands(block)):
            if arguments and not left_out & {*arguments}:
                flags = [()] if "--json" in arguments else [(), ("--json",)]
                steps += [Step(START_MS + 10**9 + number, (*arguments, *flag)) for flag in flags]
        for number, step in enumerate(steps):
            places = {before: folder / Path(page).stem / "was", now: folder / Path(page).stem / "now"}
            found = [one.do(place, number, step) for one, place in places.items()]
            seen.same(f"pages: {page}: {' '.join(step.arguments)}", *found)


def compare_streams(before: Checkout, now: Checkout, folder: Path, seen: Comparison) -> None:
    """A Spark stream begun by one checkout goes on in the other: each row is read once."""
    steps = [*walk(1, 6)]
    for name, (first, second) in {"forth": (before, now), "back": (now, before)}.items():
        for number, step in enumerate([*steps, Step(0, ("@stream", TOPIC))]):
            first.do(folder / name, number, step)
        more = Step(steps[-1].now_ms + 1, ("produce", TOPIC), '{"key":"new","value":"v"}\n' * 3)
        second.do(folder / name, len(steps) + 1, more)
        rows = second.do(folder / name, len(steps) + 2, Step(0, ("@stream", TOPIC)))["out"].splitlines()
        places = [(row["partition"], row["offset"]) for row in map(json.loads, rows)]
        seen.same(
            f"streams: {name}",
            [len({*places}), True],
            [len(places), any('"new"' in row or "bmV3" in row for row in rows)],
        )


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A work tree of the commit, until the end."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Types the same commands into two commits.")
    parser.add_argument("commit")
    parser.add_argument("--walks", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first walk's number")
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args(arguments)
    options = ("--spark",) if given.spark else ()
    seen, good = Comparison(), Counter[str]()
    with checked_out(given.commit) as tree, tempfile.TemporaryDirectory() as folder:
        before, now = Checkout(tree, *options), Checkout(ROOT, *options)
        for seed in range(given.first, given.first + given.walks):
            good += compare_walk(seed, before, now, Path(folder) / str(seed), seen)
        compare_pages(before, now, Path(folder) / "pages", LEFT_OUT | (set() if given.spark else {"verify"}), seen)
        if given.spark:
            compare_streams(before, now, Path(folder) / "streams", seen)
        for one in (before, now):
            one.close()
    print(f"\ncompared: {dict(seen.counts)}; ended well: {dict(good)}; different: {sum(seen.changes.values())}")
    return 1 if seen.changes else 0


if __name__ == "__main__":
    sys.exit(main())
