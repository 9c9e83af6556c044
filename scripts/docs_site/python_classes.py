"""The page of classes and functions, from their signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

PLACE = "reference/classes.md"
OPENING = """\
# Classes and functions

Made from the docstrings in the source, for looking up a signature or an error. [The Python API](python.md) explains the
same with examples.
"""
PUBLIC = {
    "lithify": ("open", "Record", "Cursor", "AtTime"),
    "lithify.api.lake": ("Lake",),
    "lithify.api.topic": ("Topic",),
    "lithify.api.stream": ("Stream",),
    "lithify.service.read.fetch": ("LogReader", "TopicReader"),
    "lithify.api.groups": ("Membership", "Group"),
    "lithify.coordination.groups.group_reader": ("GroupReader",),
    "lithify.service.snapshot.lake_consumer": ("LakeConsumer",),
    "lithify.api.replicas": ("LakeReplicas",),
    "lithify.kafka": ("SnapshotConsumer", "hydrate", "publish"),
    "lithify.api.pulsar": ("client_config",),
    "lithify.pulsar_consumer": ("PulsarSnapshotConsumer",),
    "lithify.spark_source": ("register",),
    "lithify.testing": ("memory_lake", "FakeClock"),
}
"""By the module that a program imports them from, or that has them."""
LINE = 100
"""Characters of a signature on one line."""

_RULE = re.compile(r"(?<![\w\[`])C(\d{1,2})\b(?![^`\n]*`(?:[^`\n]*`[^`\n]*`)*[^`\n]*$)", re.MULTILINE)


def page() -> str:
    """The text of the page."""
    return OPENING + "".join(
        _entry(module, name, getattr(import_module(module), name)) for module, names in PUBLIC.items() for name in names
    )


def _entry(module: str, name: str, thing: Any) -> str:
    where = "" if module == "lithify" else f"In `{module}`.\n\n"
    if inspect.isclass(thing):
        return f"\n## {name}\n\n{where}{_told(thing)}{''.join(_members(thing))}"
    return f"\n## {name}\n\n{where}{_signature(name, thing)}{_told(thing)}"


def _members(kind: type) -> Iterator[str]:
    made = vars(kind).get("__init__")
    if inspect.isfunction(made) and not is_dataclass(kind):
        yield f"\n{_signature(kind.__name__, made)}"
    elif fields := list(_fields(kind)):
        yield "\n" + "".join(fields)
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or not _is_ours(member):
            continue
        if isinstance(member, property):
            yield f"\n### {kind.__name__}.{name}\n\n{_told(member)}"
        elif inspect.isfunction(member):
            yield f"\n### {kind.__name__}.{name}\n\n{_signature(name, member)}{_told(member)}"


def _is_ours(member: object) -> bool:
    code = member.fget if isinstance(member, property) else member
    return getattr(code, "__module__", "").startswith("lithify.")


def _fields(kind: type) -> Iterator[str]:
    """The public fields of a dataclass or a named tuple, with the text below each."""
    body = _node(kind).body if kind.__module__.startswith("lithify") else []
    for number, node in enumerate(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            after = body[number + 1] if number + 1 < len(body) else None
            said = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                said = ": " + " ".join(str(after.value.value).split())
            yield f"- `{ast.unparse(node)}`{_with_links(said)}\n"


def _told(thing: object) -> str:
    said = inspect.getdoc(thing)
    return _with_links(said) + "\n" if said else ""


def _with_links(text: str) -> str:
    """Rules become links to the guarantees."""
    return _RULE.sub(lambda rule: f"[{rule[0]}](../guarantees.md#c{rule[1]})", text)


def _signature(name: str, call: Callable[..., object]) -> str:
    node = _node(call)
    parameters = list(_parameters(node.args))
    answer = f" -> {ast.unparse(node.returns)}" if node.returns and name == node.name else ""
    line = f"{name}({', '.join(parameters)}){answer}"
    if len(line) > LINE:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in parameters) + f"){answer}"
    return f"```python\n{line}\n```\n\n"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    ordered = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(ordered) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(ordered, defaults, strict=True):
        if argument.arg != "self":
            yield _parameter(argument, default)
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, given)
    if arguments.kwarg:
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{kind}" + (f" = {ast.unparse(default)}" if default else "")


def _node(thing: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
