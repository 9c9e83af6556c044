"""The errors and states that tables of the docs quote are those that the program prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lithify

SOURCES = Path(lithify.__file__).parent
DOCS = SOURCES.parents[1] / "docs"
HEADERS = ("error", "`STATE`")
VALUE = "\0"
"""Stands for a value in a text of the program."""
QUOTED = re.compile(r"`([^`]+)`")
EXAMPLE = re.compile(r"\b(?:[A-Z]+|[A-Z][a-z]+[A-Z]\w*|\d+)(?::\d+)*\b")
"""Stands for a value in a text of the docs: N, NAME, 401, ConsumerBusy."""


def rows() -> Iterator[tuple[str, str]]:
    """The page, and the first cell, of every row of such a table."""
    for page in sorted(DOCS.rglob("*.md")):
        inside = False
        for line in page.read_text("utf-8").splitlines():
            first = line.removeprefix("|").partition("|")[0].strip()
            inside = line.startswith("|") and (inside or first in HEADERS)
            if inside:
                yield str(page.relative_to(DOCS)), first


def printed() -> str:
    """All texts of the program but docstrings, one a line."""
    texts = []
    for path in sorted(SOURCES.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(str(v.value) if isinstance(v, ast.Constant) else VALUE for v in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


PRINTED = printed()
LINES = frozenset(PRINTED.splitlines())
CASES = sorted({(page, text) for page, cell in rows() for text in QUOTED.findall(cell) if " " in text})


@pytest.mark.parametrize(("page", "text"), CASES)
def test_quoted_texts_are_printed(page: str, text: str) -> None:
    assert is_printed(text) or is_printed(EXAMPLE.sub(VALUE, text)), f"{page}: {text}"


def is_printed(text: str) -> bool:
    """Whether it is in a text of the program, perhaps with another one as the value that it begins with."""
    ends = [match.start() for match in re.finditer(r":? ", text)]
    return text in PRINTED or any(text[:end] in LINES and f"{VALUE}{text[end:]}" in PRINTED for end in ends)


def test_there_are_such_texts() -> None:
    assert len(CASES) > 10
