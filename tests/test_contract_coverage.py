"""Every rule of the contract (docs/guarantees.md) has a test that names it.

A test names a rule in its name or docstring, or in that of its module; a scenario in its text.
Whether it fails without the rule is for its reader to see; that there is one is for this module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
CONTRACT = TESTS.parent / "docs" / "guarantees.md"
RULES = [int(rule) for rule in re.findall(r"^### C(\d+)$", CONTRACT.read_text("utf-8"), re.MULTILINE)]


def cited() -> dict[int, set[str]]:
    """By rule, the tests that name it."""
    found: dict[int, set[str]] = {}
    for rule, place in (*cited_by_tests(), *cited_by_scenarios()):
        found.setdefault(rule, set()).add(place)
    return found


def cited_by_tests() -> Iterator[tuple[int, str]]:
    for path in TESTS.rglob("*.py"):
        module = ast.parse(path.read_text("utf-8"))
        if path.name.startswith("test_"):
            yield from rules_in(ast.get_docstring(module), str(path.relative_to(TESTS)))
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and is_test(node):
                yield from rules_in(f"{node.name} {ast.get_docstring(node)}", f"{path.relative_to(TESTS)}::{node.name}")


def rules_in(text: str | None, place: str) -> Iterator[tuple[int, str]]:
    yield from ((int(rule), place) for rule in re.findall(r"\bC(\d{1,2})\b", text or ""))


def is_test(function: ast.FunctionDef) -> bool:
    """A test function, or a step or an invariant of a state machine."""
    decorators = {ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list}
    return function.name.startswith("test_") or bool(decorators & {"rule", "invariant"})


def cited_by_scenarios() -> Iterator[tuple[int, str]]:
    for path in TESTS.glob("scenarios/*.txt"):
        for rule in re.findall(r"^C(\d{1,2}): ", path.read_text("utf-8"), re.MULTILINE):
            yield int(rule), path.name


CITED = cited()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"C{rule}")
def test_a_rule_has_a_test(rule: int) -> None:
    assert CITED.get(rule), f"no test names C{rule}"


def test_no_test_names_a_rule_that_the_contract_does_not_have() -> None:
    assert sorted(CITED.keys() - set(RULES)) == []


def test_the_contract_gives_every_number_once() -> None:
    assert len(RULES) == len(set(RULES)) > 40
