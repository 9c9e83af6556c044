"""The mutation score of the pure rules: how many small changes of the code a test notices.

    scripts/mutants.py                              200 of src/lithify/rules, drawn with seed 1
    scripts/mutants.py --count 50 --seed 7 src/lithify/rules/compaction

Each mutant is one change of one expression in a function: a comparison turned round or made inclusive, `and` for `or`,
plus for minus, a number one higher, a condition negated, True for False. The unit tests that import the file try it
first, then scenarios and properties, these with at most `EXAMPLES` examples. What no test notices is printed: a test is
missing, or the change changes nothing. The same seed draws the same mutants of the same code, so that the score can be
compared before and after tests are taken out. `just mutants` calls this.

    a process for each file:   tests imported and collected ──► fork ──► functions get the mutant's code ──► tests
                                                            └─► fork ──► ...

So a mutant costs what its tests take until the first fails, and not their imports. What is evaluated when a module is
imported, such as constants and default values, is not changed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import CodeType, FunctionType
from typing import TextIO

import pytest

from tests_for import ROOT, importers, tests_for

RULES = ROOT / "src" / "lithify" / "rules"
UNIT = ROOT / "tests" / "unit"
NEAR = 1
THEN = ("scenarios", "properties")
"""The folders whose tests try what the unit tests have not noticed."""
EXAMPLES = 40
PROCESSOR_S = 120
"""What the tests of one mutant may take of a processor, about twice what they take where they all pass: a busy machine
makes none endless."""
TIMEOUT_S = 1800
NOTHING_CHANGED = 3
"""The exit code of a fork that has no function to change, whose tests would say nothing of the mutant."""
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
    """The change of node `number` of a file, as `ast.walk` counts: what stands in the line, and what in its place."""

    file: Path
    number: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}  {self.before}  ->  {self.after}"

    def code(self) -> CodeType:
        """Of the whole file, with the change."""
        tree = ast.parse(self.file.read_text("utf-8"))
        old = [*ast.walk(tree)][self.number]
        new = changed(old)
        assert new is not None
        mutated = ast.fix_missing_locations(Exchange(old, new).visit(tree))
        assert isinstance(mutated, ast.Module)
        return compile(mutated, str(self.file), "exec")


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
    """Exchanges one node."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().generic_visit(node)


def mutants(file: Path) -> Iterator[Mutant]:
    """All of a file's functions."""
    tree = ast.parse(file.read_text("utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node) for body in bodies for statement in body for node in ast.walk(statement)}
    for number, node in enumerate(ast.walk(tree)):
        new = changed(node) if id(node) in inside else None
        if new is not None:
            assert isinstance(node, ast.expr)
            yield Mutant(
                file, number, node.lineno, ast.unparse(node), ast.unparse(ast.fix_missing_locations(copy.deepcopy(new)))
            )


def exchanged(code: CodeType) -> int:
    """Gives functions that exist the code that they have in `code`, a whole file. Returns how many there are."""
    new = {(one.co_qualname, one.co_firstlineno): one for one in within(code)}
    gc.unfreeze()  # what is frozen, as the tests are once they are collected, is not among the objects
    functions = [
        one
        for one in gc.get_objects()
        if isinstance(one, FunctionType) and one.__code__.co_filename == code.co_filename
    ]
    for function in functions:
        old = function.__code__
        function.__code__ = new.get((old.co_qualname, old.co_firstlineno), old)
    return len(functions)


def within(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from within(one)


class Trial:
    """A plugin of pytest: instead of the collected tests it runs a fork with them for each mutant; None is as it is."""

    def __init__(self, drawn: Sequence[Mutant | None], output: TextIO) -> None:
        self._drawn, self._output = drawn, output
        self.noticed: list[bool] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for mutant in self._drawn:
            child = os.fork()
            if not child:
                resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
                os._exit(self._fails(session, mutant))
            status = _ended(child)
            if os.waitstatus_to_exitcode(status) == NOTHING_CHANGED:
                sys.exit(f"no function of this file was found: {mutant}")
            self.noticed.append(status != 0)
            if mutant is not None:
                print(_outcome(status), mutant, file=self._output, flush=True)
        return True

    @staticmethod
    def _fails(session: pytest.Session, mutant: Mutant | None) -> int:
        if mutant is not None and not exchanged(mutant.code()):
            return NOTHING_CHANGED
        for number, item in enumerate(session.items):
            after = session.items[number + 1] if number + 1 < len(session.items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                return 1
        return 0


def _outcome(status: int) -> str:
    if not status:
        return "UNNOTICED"
    return "endless  " if os.WIFSIGNALED(status) else "noticed  "


def _ended(child: int) -> int:
    """The status of a process; one that takes too long has been ended, which is noticed as well."""
    until_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until_s:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def noticed_of(drawn: Sequence[Mutant | None], tests: Sequence[Path]) -> int:
    """How many mutants of one file the tests notice, nearest first. To be called in a process of its own."""
    output = os.fdopen(os.dup(1), "w")
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)  # what pytest says of each failure
    trial = Trial(drawn, output)
    then = [ROOT / "tests" / folder for folder in THEN]
    options = ["-x", "-q", "-s", "-p", "no:cacheprovider", "--examples", str(EXAMPLES)]
    pytest.main([*options, *map(str, [*tests, *then])], plugins=[trial])
    assert len(trial.noticed) == len(drawn), f"these tests cannot be collected: {tests}"
    return sum(trial.noticed)


def near_tests(file: Path, tests: Iterable[tuple[int, Path]]) -> Iterator[Path]:
    """Unit tests that import a file, and those of its folder that import what imports it."""
    parts = file.relative_to(RULES.parent).parts
    folder = UNIT / parts[file.is_relative_to(RULES)]  # tests of `rules/lifecycle` are in `unit/lifecycle`
    for far, test in tests:
        if (far <= NEAR and test.is_relative_to(UNIT)) or (far <= NEAR + 1 and test.is_relative_to(folder)):
            yield test


def main() -> int:
    parser = argparse.ArgumentParser(description="Counts small changes of the rules that tests notice.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("place", nargs="?", type=Path, default=RULES)
    given = parser.parse_args()
    place = given.place.resolve()
    every = [one for file in sorted(place.rglob("*.py") if place.is_dir() else [place]) for one in mutants(file)]
    by_file: dict[Path, list[Mutant]] = defaultdict(list)
    for mutant in Random(given.seed).sample(every, min(given.count, len(every))):
        by_file[mutant.file].append(mutant)
    files, by = importers()
    near = {file: [*near_tests(file, tests_for([file], by, files))] for file in by_file}
    os.chdir(ROOT)
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        if processes.submit(noticed_of, [None], next(iter(near.values()))).result():
            sys.exit("the tests fail as it is")
        noticed = sum(processes.map(noticed_of, by_file.values(), near.values()))
    print(f"{noticed} of {sum(map(len, by_file.values()))} noticed, drawn from {len(every)} with seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
