"""Writes the index at the end of docs/guarantees.md: each rule, its promise, and the tests that name it.

`just docs` calls it. A test compares the page with what this would write, so that the index cannot fall behind.

A test names a rule in its name or docstring, or in that of its module; a scenario in its text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guarantees.md"
TESTS = ROOT / "tests"

_HEADING = "\n## Index\n"
_OPENING = """
<!-- Written by `just docs` from the rules above and the tests that name them. -->

The last column has the folders of `tests/` with tests that name the rule. `grep -rnw C49 tests` lists them.

| rule | promise | tested in |
| --- | --- | --- |
"""


def promises(text: str) -> list[tuple[int, str]]:
    """The rules in the order of the page: the number, and the bold sentence with which each opens, or ''."""
    found = re.findall(r"^### C(\d+)\n\n(?:\*\*(.+?)\*\*)?", text, re.MULTILINE | re.DOTALL)
    return [(int(rule), " ".join(promise.split())) for rule, promise in found]


@cache
def cited() -> dict[int, set[str]]:
    """By rule, the tests that name it: a file below `tests/`, and behind `::` the function."""
    found: dict[int, set[str]] = {}
    for rule, place in (*_cited_by_tests(), *_cited_by_scenarios()):
        found.setdefault(rule, set()).add(place)
    return found


def page() -> str:
    """The whole page, with the index that its rules and the tests give."""
    rules, _, _ = PAGE.read_text("utf-8").partition(_HEADING)
    return rules + _HEADING + _OPENING + "".join(_rows(dict(promises(rules)), cited()))


def _rows(promised: dict[int, str], tests: dict[int, set[str]]) -> Iterator[str]:
    for rule in range(1, max(promised) + 1):
        folders = sorted({place.partition("/")[0] for place in tests.get(rule, ())})
        if rule in promised:
            yield f"| [C{rule}](#c{rule}) | {promised[rule]} | {', '.join(folders)} |\n"
        else:
            yield f"| C{rule} | (not in use; no rule had this number) | |\n"


def _cited_by_tests() -> Iterator[tuple[int, str]]:
    for path in TESTS.rglob("*.py"):
        module = ast.parse(path.read_text("utf-8"))
        place = path.relative_to(TESTS).as_posix()
        if path.name.startswith("test_"):
            yield from _rules_in(ast.get_docstring(module), place)
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and _is_test(node):
                yield from _rules_in(f"{node.name} {ast.get_docstring(node)}", f"{place}::{node.name}")


def _rules_in(text: str | None, place: str) -> Iterator[tuple[int, str]]:
    yield from ((int(rule), place) for rule in re.findall(r"\bC(\d{1,2})\b", text or ""))


def _is_test(function: ast.FunctionDef) -> bool:
    """A test function, or a step or an invariant of a state machine."""
    decorators = {ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list}
    return function.name.startswith("test_") or bool(decorators & {"rule", "invariant"})


def _cited_by_scenarios() -> Iterator[tuple[int, str]]:
    for path in TESTS.glob("scenarios/*.txt"):
        for rule in re.findall(r"^C(\d{1,2}): ", path.read_text("utf-8"), re.MULTILINE):
            yield int(rule), path.relative_to(TESTS).as_posix()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
