"""No name, setting, path or text of a stranger steers the terminal, begins a line of its own, or hides what is there.

Every verb there is, with every option it has, over a topic with nasty names and failures, and with nasty words.
"""

from __future__ import annotations

import atexit
import io
import json
import re
import socket
from collections.abc import Iterator

import click
import pytest

import lithify as package
from lithify.cli.main import run
from lithify.cli.terminal import drawing, output
from lithify.cli.verbs import lithify_group
from lithify.errors import InvalidNameError
from lithify.model.failure import LogFailure
from lithify.model.record import Record
from lithify.testing.oracle_inspector import OracleInspector
from support.processes.in_process import signal_handlers

NASTY = {
    "a screen cleared": "\x1b[2J\x1b[H",
    "a colour": "\x1b[31mred\x1b[0m",
    "a line of its own": "x\nforged  9  9 TiB",
    "a line overwritten": "x\rforged",
    "a title of the window": "\x1b]0;owned\x07",
    "controls of one byte": "\x9b2J\x85\x90",
    "right to left": "\u202egpj.exe\u2066",
    "lines of Unicode": "a\u2028b\u2029c",
    "bell, backspace, delete": "\x07\x08\x7f",
    "invisible": "a\u200bb\ufeff\U000e0041",
}
ALL = "".join(NASTY.values())
TAKEN = socket.create_server(("127.0.0.1", 0))
"""Where a gateway cannot listen, so that it ends."""
atexit.register(TAKEN.close)
NAME = "persistent://t/n/orders"
NOT_IN_A_NAME = str.maketrans({"\n": None, "/": None, "\u2028": None, "\u2029": None, "\x85": None, "\r": None})


def commands() -> Iterator[tuple[str, ...]]:
    for name, command in lithify_group.commands.items():
        yield from ((name, verb) for verb in command.commands) if isinstance(command, click.Group) else [(name,)]


def command_of(words: tuple[str, ...]) -> click.Command:
    found = lithify_group.commands[words[0]]
    return found.commands[words[1]] if isinstance(found, click.Group) else found


def needed(command: click.Command, topic: str) -> list[str]:
    """What the verb has to be given: the topic where it wants one, else a nasty word; 0 where it wants a number."""
    given = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            given.append(topic if "TOPIC" in str(parameter.metavar) else ALL)
        elif parameter.required:
            given += [parameter.opts[0], "0" if isinstance(parameter.type, click.types.IntParamType) else ALL]
    flags = {name for p in command.params for name in p.opts}
    once = ["--once"] if "--once" in flags else []
    return given + once + (["--listen", f"127.0.0.1:{TAKEN.getsockname()[1]}"] if "--listen" in flags else [])


def lines_of_command(words: tuple[str, ...], topic: str) -> Iterator[list[str]]:
    """As it should be; as JSON; with what it asks for before it does harm; each option with a nasty word; too many."""
    command = command_of(words)
    given = [*words, *needed(command, topic)]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.is_flag]
    flags = {name for p in command.params for name in p.opts}
    yield given
    yield [*given, "--json"]
    yield [*given, "--debug"]
    if words[0] != "kafka":  # where each would look for a broker of that name, for ten seconds
        yield from ([*given, option.opts[0], ALL] for option in options)
        yield from ([*given, option.opts[0], f"{ALL}={ALL}"] for option in options if option.multiple)
    yield [*given, ALL]
    yield [*given, f"--{ALL}"]
    if "--yes" in flags:
        yield [*given, "--yes"]


@pytest.fixture
def nasty_topic(lithify, failing, plain_rounds, monkeypatch) -> str:
    """A topic as others may have left one: its name, settings, records, and what its rounds failed with."""
    monkeypatch.setattr(
        "lithify.api.topic.spark_inspector", lambda warehouse, _choice: OracleInspector(warehouse.files)
    )
    monkeypatch.setattr("lithify.service.creation.check_printable", lambda _reference: None)
    name = NAME + ALL.translate(NOT_IN_A_NAME)
    config = {"compaction.strategy": "header", "compaction.strategy.header": ALL}
    topic = package.open(str(lithify.warehouse)).create_topic(name, config=config)
    topic.append([Record(ALL.encode(), ALL.encode(), headers=((ALL, ALL.encode()),))])
    failing(name, {0: LogFailure(9, 1, 1, 1, ALL, quarantined=True)})
    return name


def check(text: str) -> None:
    assert sorted({c for c in text if not c.isprintable()} - {"\n"}) == [], text
    assert not any(shown.startswith("forged") for shown in text.splitlines()), text


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_no_verb_passes_on_what_steers_a_terminal(words, nasty_topic, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where --warehouse of a nasty name makes one
    for given in lines_of_command(words, nasty_topic):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{ALL}\n".encode())))
        with signal_handlers():
            run(given)
        out, err = capsys.readouterr()
        check(out + err)


@pytest.mark.parametrize("kind", NASTY)
def test_what_is_printed_is_a_line_and_nothing_else(kind, capsys, monkeypatch):
    """In colour as well, where the styles that we give have to get through."""
    monkeypatch.setattr("click._compat.should_strip_ansi", lambda *_: False)
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    word = NASTY[kind]
    rows = drawing.columns(("NAME", "WHY"), [(word, word)], left=("WHY",))
    output.show([*rows, *drawing.fields([(word, word)]), drawing.styled(word, fg="red"), word])
    output.say_error(word, "Damaged")
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 5
    plain = re.sub(r"\x1b\[(0|1|2|31)m", "", out + err)
    check(plain)
    assert "\x1b[1m" in out, "our own styles are there"
    output.print_json({word: word})
    text = capsys.readouterr().out
    check(text)
    assert json.loads(text) == {word: word}


@pytest.mark.parametrize("kind", NASTY)
def test_a_topic_with_such_a_name_is_not_made(kind, lithify):
    before = lithify.error("topic", "create", NAME + NASTY[kind])
    assert "not a valid topic name" in before or "not a topic" in before
    with pytest.raises(InvalidNameError):
        package.open(str(lithify.warehouse)).create_topic(NAME + NASTY[kind])


def test_records_are_the_same_after_a_copy(lithify, nasty_topic):
    """JSON has another way to write what would steer a terminal."""
    lines = lithify("consume", nasty_topic).out
    check(lines)
    lithify("topic", "create", "copy")
    lithify("produce", "copy", "--keep-offsets", stdin=lines)
    assert lithify("consume", "copy").out == lines
    assert json.loads(lines)["value"] == ALL
