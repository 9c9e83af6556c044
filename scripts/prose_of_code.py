"""The texts of a Python module that people read: docstrings, comments on lines of their own, the help of commands.

Lines of code within them are blank: indented lines, diagrams, and examples in the help of a command. Comments that are
instructions to a tool are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_COMMENT = re.compile(r"^ *#(?!:) ?(?!!|noqa|type:|ruff:|mypy:|pragma)(.*)$")
_TOOLS = re.compile(r"# (?:noqa|type:|ruff:|mypy:|pragma)")
_CODE = re.compile(r"^ {2,}\S")
_DRAWN = re.compile(r"\S {3,}\S|[\u2190-\u21ff\u2500-\u25ff]")
_LIST = re.compile(r"^ *(?:[-*+]|\d+\.) +\S")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Each text of a module, with its first line."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and (text := _string(node.value)) is not None:
            yield node.lineno, without_code(text, node.col_offset)
        elif isinstance(node, ast.Call):
            yield from ((value.lineno, without_code(text)) for value, text in _help(node))
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


def _help(call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """The help of an option or command: the argument `help`, or for `pairs` the second one."""
    named = [given.value for given in call.keywords if given.arg in {"help", "short_help", "epilog"}]
    of_pairs = call.args[1:2] if isinstance(call.func, ast.Attribute) and call.func.attr == "pairs" else []
    for value in [*named, *of_pairs]:
        if (text := _string(value)) is not None:
            yield value, text


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
