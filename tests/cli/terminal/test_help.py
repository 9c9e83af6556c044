"""`--help`, flags before and after the verb, and the errors of wrong command lines."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lithify.cli.verbs import lithify_group


def commands_of(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The words of a group and of all commands below it, and whether each is a group too."""
    yield path, True
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands_of(command, (*path, name))
        else:
            yield (*path, name), False


GROUPS = [path for path, is_group in commands_of(lithify_group) if is_group]
COMMANDS = [path for path, _ in commands_of(lithify_group)]
HEAVY = ("pyspark", "pyarrow", "pyiceberg", "duckdb", "numpy", "pandas", "rich")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_tells_what_it_is_for(lithify, command):
    told = lithify(*command, "--help")
    assert told.err == ""
    assert told.out.startswith(f"Usage: {' '.join(('lithify', *command))} ")
    assert max(map(len, told.out.splitlines())) <= 80
    for flag in ("--json", "--warehouse", "--catalog", "--gateway", "--debug", "-h, --help"):
        assert f"  {flag} " in told.out
    if command not in GROUPS:
        assert "Example" in told.out
        assert f"\n    {' '.join(('lithify', *command))}" in told.out or " | lithify" in told.out


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from lithify.cli.main import run; "
        f"codes = [run([*command, '--help']) for command in {COMMANDS!r}]; "
        f"print(codes, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == f"{[0] * len(COMMANDS)} []\n"


def test_help_takes_less_than_half_a_second_of_a_processor():
    """Of its time, as a busy machine stretches that of the clock."""
    program = Path(sys.executable).with_name("lithify")

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.5


def test_alone_it_helps(lithify):
    assert lithify().out == lithify("--help").out
    for group in GROUPS:
        assert lithify(*group).out == lithify(*group, "--help").out


def test_verbs_have_the_names_by_which_they_are_found():
    for path in GROUPS:
        group = lithify_group
        for name in path:
            group = group.commands[name]
        assert {name: command.name for name, command in group.commands.items()} == {
            name: name for name in group.commands
        }


def test_the_version(lithify):
    import lithify as package

    assert lithify("--version").out == f"lithify {package.__version__}\n"


def test_shared_flags_stand_before_or_after_the_verb(lithify, tmp_path):
    place = ("--warehouse", tmp_path / "elsewhere")
    lithify(*place, "topic", "create", "a")
    lithify("topic", *place, "create", "b")
    lithify("topic", "create", *place, "c")
    listed = lithify("topic", "list", "--json", *place)
    assert [topic["topic"] for topic in listed.lines] == ["a", "b", "c"]
    assert lithify("--json", *place, "topic", "list").out == listed.out
    assert lithify("topic", "--json", *place, "list").out == listed.out
    # The one closest to the verb counts.
    assert lithify("--warehouse", tmp_path / "nowhere", "topic", "list", "--json", *place).out == listed.out


WRONG = {
    "verb": (("frob",), "No such command 'frob' (see `lithify --help`)"),
    "topic verb": (("topic", "frob"), "No such command 'frob' (see `lithify topic --help`)"),
    "verb of another noun": (
        ("pulsar", "hydrate", "t"),
        "No such command 'hydrate': did you mean `lithify hydrate` or `lithify kafka hydrate`? (see `lithify pulsar "
        "--help`)",
    ),
    "verb without its noun": (
        ("publish", "t"),
        "No such command 'publish': did you mean `lithify kafka publish`? (see",
    ),
    "MapR's noun in a noun": (
        ("stream", "topic", "list"),
        "No such command 'topic': did you mean `lithify topic`? (see",
    ),
    "MapR's word": (("stream", "cursor", "list"), "No such command 'cursor': did you mean `lithify group`? (see"),
    "verb of many nouns": (
        ("create",),
        "No such command 'create': did you mean `lithify topic create` or `lithify stream",
    ),
    "MapR's option": (
        ("stream", "create", "-path", "/apps/events"),
        "No such option '-path': options begin with two dashes; names of streams and topics are arguments without an "
        "option (see",
    ),
    "short option": (("stream", "create", "-p", "x"), "No such option '-p' (see `lithify stream create --help`)"),
    "Kafka's start": (
        ("consume", "t", "--from-beginning"),
        "No such option '--from-beginning': Kafka's --from-beginnin",
    ),
    "Kafka's offset": (("consume", "t", "--offset", "3"), "No such option '--offset': Kafka's --offset is --from (see"),
    "Kafka's limit": (
        ("consume", "t", "--max-messages", "3"),
        "No such option '--max-messages': Kafka's --max-messages is --max (see `lithify consume --help`)",
    ),
    "Kafka's copies": (
        ("topic", "create", "t", "--replication-factor", "3"),
        "No such option '--replication-factor': a topic has no replicas of its own: the store replicates the data (see",
    ),
    "Kafka's topic": (
        ("topic", "describe", "--topic", "t"),
        "No such option '--topic': the topic is an argument: lithify topic info TOPIC (see",
    ),
    "Kafka's reset": (
        ("group", "reset", "g", "t", "--to-earliest"),
        "No such option '--to-earliest': Kafka's --to-earliest is --to earliest (see `lithify group reset --help`)",
    ),
    "Kafka's execute": (
        ("group", "reset", "g", "t", "--execute"),
        "No such option '--execute': Kafka's --execute is --yes",
    ),
    "Kafka's file of settings": (
        ("kafka", "ingest", "--topic", "t", "--command-config", "client.properties"),
        "No such option '--command-config': the settings of a client are in the file of --kafka-conf-file, for the",
    ),
    "Kafka's servers": (
        ("topic", "list", "--bootstrap-server", "b"),
        "No such option '--bootstrap-server': there is no server: --warehouse DIR or --catalog NAME selects the",
    ),
    "servers of Kafka": (
        ("kafka", "ingest", "--bootstrap-server", "b"),
        "No such option '--bootstrap-server'. Did you mean '--bootstrap-servers'? (see",
    ),
    "flag": (
        ("consume", "t", "--fromm"),
        "No such option '--fromm'. Did you mean '--from'? (see `lithify consume --help`)",
    ),
    "no topic": (("compact",), "Missing argument 'TOPIC' (see `lithify compact --help`)"),
    "two topics": (("consume", "a", "b"), "Got unexpected extra argument (b) (see `lithify consume --help`)"),
    "no number": (
        ("consume", "t", "--max", "x"),
        "Invalid value for '--max': 'x' is not a valid integer range (see `lithify consume --help`)",
    ),
    "no offset": (
        ("consume", "t", "--from", "9" * 5_000),
        "Invalid value for '--from': a number of 5000 digits is not an offset: offsets have at most 64 bits (see",
    ),
    "no offset, below zero": (("consume", "t", "--from", "-" + "9" * 5_000), "Invalid value for '--from': a number"),
    "no offset of a group": (("group", "reset", "g", "t", "--to", "9" * 5_000), "Invalid value for '--to': a number"),
    "no offset to end at": (("consume", "t", "--to", "9" * 5_000), "Invalid value for '--to': a number of 5000"),
    "no such format": (("produce", "t", "--format", "xml"), "Invalid value for '--format': 'xml' is not one of"),
    "two places": (
        ("status", "--warehouse", "w", "--catalog", "c"),
        "--warehouse and --catalog are both set (use only one of them)",
    ),
    "no time": (("status", "--now", "soon"), "Invalid value for '--now': 'soon' is not a time: use ISO 8601"),
    "no topic name": (("status", "a b"), "'a b' is not a topic: 'a b' must be 1 to 249 letters"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_command_line_gets_an_error_with_the_reason(lithify, case):
    arguments, said = case
    assert lithify.error(*arguments).startswith(said)
