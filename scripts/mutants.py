"""The mutation score of the pure rules: how many small changes of the code a test notices.

    scripts/mutants.py                              200 of src/lithify/rules, drawn with seed 1
    scripts/mutants.py --count 50 --seed 7 src/lithify/rules/compaction

Each mutant is one change of one expression in a copy of `src`: a comparison turned round or made inclusive, `and` for
`or`, plus for minus, a number one higher, a condition negated, True for False. The unit tests that import the file
try it first, then scenarios and properties, with the examples that they always have. What no test notices is printed:
a test is missing, or the change changes nothing. The same seed draws the same mutants of the same
code, so that the score can be compared before and after tests are taken out. `just mutants` calls this.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from random import Random

from tests_for import ROOT, importers, tests_for

RULES = ROOT / "src" / "lithify" / "rules"
NEAR = 1
THEN = ("scenarios", "properties")
"""The folders whose tests try what the unit tests have not noticed."""
TIMEOUT_S = 300
AT_ONCE = 2

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a file: what stood in the line, what stands there now, and the whole text."""

    file: Path
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}  {self.before}  ->  {self.after}"


def changed(node: ast.AST) -> ast.AST | None:
    """The node as a mutant has it; None where there is nothing to change."""
    match node:
        case ast.Compare(ops=[one]) if type(one) in COMPARED:
            new: ast.AST = ast.Compare(node.left, [COMPARED[type(one)]()], node.comparators)
        case ast.BinOp(op=one) if type(one) in COMPUTED:
            new = ast.BinOp(node.left, COMPUTED[type(one)](), node.right)
        case ast.BoolOp(op=one):
            new = ast.BoolOp(ast.Or() if isinstance(one, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            new = node.operand
        case ast.IfExp():
            new = ast.IfExp(node.test, node.orelse, node.body)
        case ast.Constant(value=bool() as value):
            new = ast.Constant(not value)
        case ast.Constant(value=int() as value):
            new = ast.Constant(value + 1)
        case _:
            return None
    return ast.copy_location(new, node)


class Exchange(ast.NodeTransformer):
    """Exchanges the node with this number, counted as `ast.walk` counts."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().generic_visit(node)


def mutants(file: Path) -> Iterator[Mutant]:
    """All of a file, but for those of its annotations and of default values of fields that count nothing."""
    text = file.read_text("utf-8")
    for number, node in enumerate(ast.walk(ast.parse(text))):
        if changed(node) is not None:
            tree = copy.deepcopy(ast.parse(text))
            old = [*ast.walk(tree)][number]
            new = changed(old)
            assert new is not None and isinstance(old, ast.expr)
            before, after = ast.unparse(old), ast.unparse(ast.fix_missing_locations(new))
            yield Mutant(file, old.lineno, before, after, ast.unparse(Exchange(old, new).visit(tree)))


def is_noticed(mutant: Mutant, folder: Path, tests: Sequence[Path]) -> bool:
    """Whether a test fails with it, in a copy of `src` in `folder`, which is whole again afterwards."""
    place = folder / mutant.file.relative_to(ROOT)
    place.write_text(mutant.text, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *map(str, tests)]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:  # it never ends: that is noticed
        return True
    finally:
        shutil.copyfile(mutant.file, place)
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Counts small changes of the rules that tests notice.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("place", nargs="?", type=Path, default=RULES)
    given = parser.parse_args()
    place = given.place.resolve()
    every = [one for file in sorted(place.rglob("*.py") if place.is_dir() else [place]) for one in mutants(file)]
    drawn = Random(given.seed).sample(every, min(given.count, len(every)))
    files, by = importers()
    folders: Queue[Path] = Queue()

    def tried(mutant: Mutant) -> bool:
        near = [test for far, test in tests_for([mutant.file], by, files) if far <= NEAR]
        tests = [test for test in near if test.is_relative_to(ROOT / "tests" / "unit")]
        folder = folders.get()
        try:
            noticed = is_noticed(mutant, folder, [*tests, *(ROOT / "tests" / folder for folder in THEN)])
        finally:
            folders.put(folder)
        print("noticed  " if noticed else "UNNOTICED", mutant, flush=True)
        return noticed

    with tempfile.TemporaryDirectory() as work:
        for number in range(AT_ONCE):
            shutil.copytree(ROOT / "src", Path(work) / str(number) / "src")
            folders.put(Path(work) / str(number))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            noticed = sum(threads.map(tried, drawn))
    print(f"{noticed} of {len(drawn)} noticed, drawn from {len(every)} with seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
