"""The texts of a Python module that people read: docstrings, comments on lines of their own, and literals.

A literal is a text if two words are next to each other in it: arguments of errors, hints, log lines, what is printed,
and the help of commands. Names, settings, SQL in capitals and patterns are not texts. Lines of code within texts are
blank: indented lines, diagrams, and examples in the help of a command. Comments that are instructions to a tool are
left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_COMMENT = re.compile(r"^ *#(?!:) ?(?!!|noqa|type:|ruff:|mypy:|pragma)(.*)$")
_TOOLS = re.compile(r"# (?:noqa|type:|ruff:|mypy:|pragma)")
_CODE = re.compile(r"^ {2,}\S")
_DRAWN = re.compile(r"\S {3,}\S|[\u2190-\u21ff\u2500-\u25ff]")
_WORDS = re.compile(r"(?<!\S)[A-Za-z]?[a-z]+ [a-z]+(?![\w.=])")
_LIST = re.compile(r"^ *(?:[-*+]|\d+\.) +\S")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Each text of a module, with its first line."""
    nodes = list(ast.walk(ast.parse(source)))
    statements = {id(node.value): node.col_offset for node in nodes if isinstance(node, ast.Expr)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if not isinstance(node, ast.expr) or id(node) in parts or (text := _string(node)) is None:
            continue
        if id(node) in statements:
            yield node.lineno, without_code(text, statements[id(node)])
        elif _WORDS.search(text):
            yield node.lineno, without_code(text)
    yield from _comments(source)


def without_code(docstring: str, margin: int = 4) -> str:
    """The text of a docstring with as many lines, in which diagrams and indented lines outside of lists are blank.

    `margin` is the column of the docstring.
    """
    plain = re.sub(r"\bNone\b", "Code", docstring).replace("\b", "")
    lines = re.sub(rf"(?<=\n) {{{margin}}}", "", plain).splitlines()
    in_list = False
    for number, line in enumerate(lines):
        in_list = bool(_LIST.match(line)) or (in_list and bool(line.strip()))
        if _DRAWN.search(line) or (not in_list and _CODE.match(line)):
            lines[number] = ""
    return "\n".join(lines)


def _string(node: ast.expr) -> str | None:
    """The text of a literal; an expression within it is a word."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_string(part) or "Code" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments on lines of their own; adjacent lines are one text."""
    block: list[str] = []
    for number, line in enumerate([*source.splitlines(), ""], 1):
        found = None if _TOOLS.search(line) else _COMMENT.match(line)
        if found:
            block.append(found[1])
        elif block:
            yield number - len(block), without_code("\n".join(block))
            block = []
