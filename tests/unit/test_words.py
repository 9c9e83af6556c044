"""Every hint names commands and flags of the command line that exist, and calls of the Python API that exist."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import lithify
import lithify.hydration
import lithify.kafka
from lithify.api.gateways.standing_jobs import LakeStandingJobs
from lithify.api.gateways.tokens import LakeTokens
from lithify.api.groups import Group
from lithify.api.kafka_files.cleaning import clean_log_directory
from lithify.api.lake import Lake
from lithify.api.pulsar import LiveTopic, client_config
from lithify.api.replicas import LakeReplicas
from lithify.api.stream import Stream
from lithify.api.topic import Topic
from lithify.cli.main import run
from lithify.cli.verbs import lithify_group
from lithify.errors import RefusedError, SourceLostError
from lithify.errors.redaction import LONGEST
from lithify.errors.words import CALLS, KEYWORDS, in_python, of_the_command_line

SOURCES = Path(lithify.__file__).parent
OF_THE_COMMAND_LINE = ("cli/", "columnar/text/", "gateway/", "reports/")
"""What only it shows, or HTTP, which has its options as parameters."""
OF_COMMAND_LINES = "command_lines.py"
"""It compares the words of a command line that a standing job runs: a flag alone is not a hint there."""
WITHOUT_A_CALL = {"doctor"}
OF_SPARK = {"--add-modules", "--archives", "--class", "--conf", "--master", "--packages"}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")

KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (Group, Lake, LakeReplicas, LakeStandingJobs, LakeTokens, LiveTopic, Stream, Topic)
}
NAMES: dict[str, Any] = {
    "lake": Lake,
    "topic": Topic,
    "stream": Stream,
    "group": Group,
    "live_topic": LiveTopic,
    "lithify": lithify,
}


def texts() -> Iterator[str]:
    """Every string of the code that names a flag or a command, with NAME for each value in it."""
    for path in sorted(SOURCES.rglob("*.py")):
        if not path.relative_to(SOURCES).as_posix().startswith(OF_THE_COMMAND_LINE) and path.name != "words.py":
            found = filter(names_one, strings(ast.parse(path.read_text("utf-8"))))
            yield from (text for text in found if path.name != OF_COMMAND_LINES or not FLAG.fullmatch(text))


def strings(tree: ast.AST) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "NAME" for part in node.values)
    yield from (
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
    )


def names_one(text: str) -> bool:
    return "`lithify " in text or bool(set(FLAG.findall(text)) - OF_SPARK)


FOUND = tuple(texts())


def test_there_are_hints_to_look_at() -> None:
    assert len(FOUND) > 100


@pytest.mark.parametrize("text", FOUND)
def test_a_hint_names_commands_and_flags_that_exist(text: str) -> None:
    every = {name for command in commands(lithify_group) for name in flags(command)}
    for command in re.findall(r"`lithify ([^`]+)`", text):
        found, words = lithify_group, command.split()
        while isinstance(found, click.Group):
            found = found.commands[words.pop(0)]
        assert set(FLAG.findall(command)) <= flags(found), command
    assert set(FLAG.findall(text)) - OF_SPARK <= every


@pytest.mark.parametrize("text", FOUND)
def test_in_python_it_names_calls_and_arguments_that_exist(text: str) -> None:
    said = in_python(text)
    assert set(FLAG.findall(said)) <= OF_SPARK
    assert set(re.findall(r"`lithify ([\w-]+)[^`]*`", said)) <= WITHOUT_A_CALL
    calls = [
        code for code in re.findall(r"`([^`]+)`", said) if re.match(r"(lake|lithify|LiveTopic|\w+)[.(].*\)$", code)
    ]
    for code in calls:
        kind_of(ast.parse(code, mode="eval").body)
    bare = re.sub(r"`[^`]*`", "", said)
    assert set(re.findall(r"(?<![\w.])([a-z_]+)=(?:\.{3}|True|False|[\[{'A-Z])", bare)) <= arguments()


@pytest.mark.parametrize("verb", CALLS)
def test_every_call_of_the_table_is_named_by_a_hint(verb: str) -> None:
    assert any(re.search(rf"`lithify {verb}\b", text) for text in FOUND)


@pytest.mark.parametrize("flag", KEYWORDS)
def test_every_argument_of_the_table_is_named_by_a_hint(flag: str) -> None:
    assert any(flag in FLAG.findall(text) for text in FOUND)


def commands(command: click.Command) -> Iterator[click.Command]:
    for one in command.commands.values() if isinstance(command, click.Group) else ():
        yield from commands(one)
    yield command


def flags(command: click.Command) -> set[str]:
    return {name for option in command.params for name in [*option.opts, *option.secondary_opts]}


def kind_of(node: ast.expr) -> Any:
    """What an expression of a hint is: every call in it is bound to the signature of what it calls."""
    match node:
        case ast.Name():
            return NAMES.get(node.id) or KINDS[node.id]
        case ast.Attribute():
            return getattr(kind_of(node.value), node.attr)
        case ast.Call():
            called = kind_of(node.func)
            signature = inspect.signature(called)
            of_an_object = isinstance(node.func, ast.Attribute) and inspect.isclass(kind_of(node.func.value))
            itself = [None] if of_an_object else []
            signature.bind(*itself, *node.args, **{str(one.arg): one.value for one in node.keywords})
            return called if inspect.isclass(called) else KINDS.get(str(signature.return_annotation))
    raise AssertionError(ast.dump(node))


def arguments() -> set[str]:
    """Of all that users of the Python API call."""
    functions: list[Callable[..., Any]] = [
        *(member for kind in KINDS.values() for _, member in inspect.getmembers(kind, inspect.isfunction)),
        lithify.open,
        client_config,
        clean_log_directory,
        lithify.hydration.hydrate,
        lithify.kafka.publish,
    ]
    return {name for function in functions for name in inspect.signature(function).parameters}


def test_what_an_error_says_depends_on_who_reads_it() -> None:
    error = SourceLostError("orders-0 is cut", hint="--accept-loss continues; `lithify topic delete orders --yes` ends")
    assert str(error) == "orders-0 is cut (accepts_loss=True continues; `lake.delete_topic('orders')` ends)"
    sent = pickle.dumps(error)
    with of_the_command_line():
        assert str(error) == "orders-0 is cut (--accept-loss continues; `lithify topic delete orders --yes` ends)"
        assert str(pickle.loads(sent)) == str(error)
    assert error.hint == "accepts_loss=True continues; `lake.delete_topic('orders')` ends"


def test_the_same_error_by_the_api_and_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = lithify.open(str(tmp_path))
    lake.create_topic("orders")
    with pytest.raises(RefusedError, match=r"run `lake.topics\(\)` to see the topics"):
        lake.topic("payments")
    assert run(["--warehouse", str(tmp_path), "topic", "info", "payments"]) == 2
    assert "run `lithify topic list` to see the topics" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("give another value with --config NAME=VALUE", "give another value with config={NAME: VALUE}"),
        ("with --spark-conf spark.local.dir=FOLDER", "with spark_conf={'spark.local.dir': FOLDER}"),
        ("it is `lithify cleaner run --threads`", "it is `lake.cleaner(threads=...)`"),
        ("`lithify sweep orders --yes`", "`lake.topic('orders').sweep(delete=True)`"),
        ("`spark-submit --packages a:b`; a--into", "`spark-submit --packages a:b`; a--into"),
    ],
)
def test_forms(text: str, said: str) -> None:
    assert in_python(text) == said


@pytest.mark.parametrize("flags", [[], ["--json"]])
@pytest.mark.parametrize(
    "command",
    [
        ["status", "NAME"],
        ["topic", "info", "NAME"],
        ["topic", "create", "NAME"],
        ["topic", "alter", "orders", "--config", "NAME"],
        ["topic", "alter", "orders", "--config", "NAME=1"],
        ["topic", "alter", "orders", "--config", "cleanup.policy=NAME"],
        ["group", "describe", "NAME"],
        ["stream", "info", "NAME"],
        ["produce", "orders", "NAME"],
        ["table", "orders", "--at", "NAME"],
        ["hydrate", "orders", "--to", "NAME"],
        ["--warehouse", "NAME", "topic", "list"],
        ["--catalog", "NAME", "topic", "list"],
        ["NAME"],
    ],
)
def test_an_error_about_a_name_of_any_length_is_short(
    command: list[str], flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = str(tmp_path / "w")
    lithify.open(warehouse).create_topic("orders")
    given = ["x" * 100_000 if word == "NAME" else word.replace("NAME", "y" * 100_000) for word in command]
    place = [] if "--warehouse" in given or "--catalog" in given else ["--warehouse", warehouse]
    assert run([*flags, *place, *given]) in (1, 2)
    printed = capsys.readouterr()
    assert 0 < len(printed.err) < 3 * LONGEST
    assert not printed.out


def test_a_short_error_stays_as_it_is_on_its_way_from_a_task() -> None:
    error = SourceLostError("a" + "é" * 5_000 + "z", hint="h" * 5_000)
    assert len(error.message) <= LONGEST
    assert (error.message[0], error.message[-1]) == ("a", "z")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
