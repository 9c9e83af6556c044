"""Completion in shells: what is offered, and real shells that have read the script."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem

from lithify.cli.completing.shells import PROGRAM, SHELLS, VARIABLE, Zsh
from lithify.cli.invocation import Invocation
from lithify.cli.verbs import lithify_group
from support.processes.in_process import Program
from support.processes.shells import shell
from support.servers.tcp_proxy import wait_until

FOLDER = Path(sys.executable).parent
PULSARS = "persistent://shop/eu/orders"
HEAVY = ("pyspark", "pyarrow", "pyiceberg", "duckdb", "numpy", "pandas", "rich")

Complete = Callable[[str], list[str]]


def items(line: str) -> list[CompletionItem]:
    """What is offered after `line`."""
    *args, incomplete = line.split(" ")
    return Zsh(lithify_group, {"obj": Invocation()}, PROGRAM, VARIABLE).get_completions(args, incomplete)


def offered(line: str) -> list[str]:
    return [item.value for item in items(line)]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory) -> Iterator[Program]:
    """Topics, also one of Pulsar's, in streams, read by a group, and replicated."""
    warehouse = tmp_path_factory.mktemp("lake") / "warehouse"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITHIFY_WAREHOUSE", str(warehouse))
        yield laid(Program(warehouse))


def laid(lithify: Program) -> Program:
    for name in ("orders", "shop/orders", "shop/baskets", PULSARS):
        lithify("topic", "create", name)
    lithify("stream", "create", "empty")
    lithify("produce", "orders", stdin='{"key":"a","value":"1"}')
    lithify("consume", "orders", "--group", "billing")
    lithify("replica", "add", "orders", "--to", lithify.warehouse.with_name("backup"))
    lithify("gateway", "job", "add", "table", "--", "hydrate", "orders", "--to", "orders.db", "--continuous")
    return lithify


@pytest.fixture
def lake(unchanged, monkeypatch):
    """The same for tests that change nothing of it."""
    monkeypatch.setenv("LITHIFY_WAREHOUSE", str(unchanged.warehouse))
    return unchanged


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("comp", ["completion", "compact"]),
        ("topic un", ["uncompact"]),
        ("compact --partit", ["--partition"]),
        ("topic create x --like ", ["kafka", "pulsar", "mapr"]),
        ("consume orders --from ", ["earliest", "latest"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("topic alter x --config delete.r", ["delete.retention.ms="]),
        ("topic alter x --config=delete.r", ["delete.retention.ms="]),
        ("topic alter x --unset delete.r", ["delete.retention.ms"]),
        ("stream edit x --config ttl", ["ttl="]),
        ("topic alter x --config ttl", []),
    ],
)
def test_what_the_program_itself_knows(line, there):
    assert offered(line) == there


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("compact ", ["orders", PULSARS, "shop/baskets", "shop/orders"]),
        ("compact sh", ["shop/baskets", "shop/orders"]),
        ("topic describe or", ["orders"]),  # another name of `topic info`
        ("group reset billing sh", ["shop/baskets", "shop/orders"]),
        ("stream info ", ["default", "empty", "persistent://shop/eu", "shop"]),
        ("group describe ", ["billing"]),
        ("consume orders --group b", ["billing"]),
        ("replica pause ", ["orders-to-backup"]),
        ("gateway job pause ", ["table"]),
        ("replica verify orders", ["orders-to-backup", "orders"]),
        ("kafka ingest --into sh", ["shop/baskets", "shop/orders", "shop/"]),
        ("topic create ", []),  # it is to be a new one
    ],
)
def test_names_of_the_warehouse(lake, line, there):
    assert offered(line) == there


def test_the_warehouse_is_that_of_the_command_line(lake, monkeypatch):
    monkeypatch.setenv("LITHIFY_WAREHOUSE", "/nowhere")
    assert offered("compact or") == []
    for line in (f"--warehouse {lake.warehouse} compact or", f"compact --warehouse {lake.warehouse} or"):
        assert offered(line) == ["orders"]


def test_groups_are_those_of_the_database_that_is_named(lake, tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/groups.db"
    assert offered(f"group describe --coordination-url {url} ") == []
    assert not (tmp_path / "groups.db").exists()
    lake("consume", "orders", "--group", "shipping", "--coordination-url", url)
    assert offered(f"group describe --coordination-url {url} ") == ["shipping"]
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", url)
    assert offered("group describe ") == ["shipping"]


def test_a_catalog_is_asked(lake, tmp_path, monkeypatch):
    """Where it is not the file of a directory: here it is one by its URL."""
    config = tmp_path / ".pyiceberg.yaml"
    url = f"sqlite:///{lake.warehouse}/catalog.db"
    config.write_text(f"catalog:\n  lithify:\n    type: sql\n    uri: {url}\n    warehouse: file://{lake.warehouse}\n")
    environment = {**os.environ, "PYICEBERG_HOME": str(tmp_path), "COMP_LINE": "lithify --catalog lithify compact sh"}
    environment[VARIABLE] = "bash_complete"

    def asked() -> tuple[list[str], str]:
        done = subprocess.run([FOLDER / PROGRAM], env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split(), done.stderr

    there = (["plain,shop/baskets", "plain,shop/orders"], "")
    wait_until(lambda: asked() == there, "the catalog is not listed", 120)


@pytest.mark.parametrize("damage", [None, b"", b"not a database"])
def test_where_there_is_no_warehouse_there_is_nothing_and_nothing_is_made(tmp_path, damage):
    place = tmp_path / "w"
    if damage is not None:
        place.mkdir()
        (place / "catalog.db").write_bytes(damage)
    before = sorted(tmp_path.rglob("*"))
    verbs = ("compact", "stream info", "group describe", "replica pause", "replica verify")
    code = f"""
import os
from lithify.cli.main import Invocation, complete_if_asked, lithify_group
for verb in {verbs}:
    os.environ["COMP_LINE"] = f"lithify {{verb}} --warehouse {place} "
    assert complete_if_asked(lithify_group, Invocation())
"""
    environment = {**os.environ, VARIABLE: "bash_complete"}
    asked = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (asked.stdout.strip(), asked.stderr) == ("", "")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_is_looked_at_without_heavy_libraries(lake):
    code = f"""{_OFFERED}
print(offered('compact sh'), offered('group describe '), offered('replica pause '))
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['shop/baskets', 'shop/orders'] ['billing'] ['orders-to-backup']\n[]\n"


_OFFERED = """
import sys
from lithify.cli.verbs import lithify_group
from lithify.cli.completing.shells import PROGRAM, VARIABLE, Zsh
from lithify.cli.invocation import Invocation
def offered(line):
    *args, incomplete = line.split(" ")
    shell = Zsh(lithify_group, {"obj": Invocation()}, PROGRAM, VARIABLE)
    return [item.value for item in shell.get_completions(args, incomplete)]
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Path:
    """What a Bash has read that completes."""
    path = tmp_path_factory.mktemp("bash") / "completion"
    path.write_text("\n".join(shell("lithify", "completion", "bash")))
    return path


@pytest.fixture
def in_bash(lake, script) -> Complete:
    """What a real Bash would put in place of the last word, as it splits a line into words itself."""

    def complete(line: str) -> list[str]:
        asked = f"""
. {script}
compopt() {{ echo "compopt $1 $2"; }}
COMP_LINE={line!r} COMP_POINT=${{#COMP_LINE}}
_lithify_completion lithify
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        return shell("bash", "--norc", "-c", asked)

    return complete


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("lithify compact or", ["orders"]),
        ("lithify topic info persistent:", ["//shop/eu/orders"]),  # Bash keeps what is before a colon
        ("lithify topic info persistent://shop", ["//shop/eu/orders"]),
        ("lithify topic alter orders --config delete.r", ["compopt -o nospace", "delete.retention.ms="]),
        ("lithify topic alter orders --config=delete.r", ["compopt -o nospace", "delete.retention.ms="]),
        ("lithify produce orders pa", ["compopt -o default", ""]),
        ("lithify --warehouse x", ["compopt -o dirnames", ""]),
        ("lithify compact 'nothing like it", [""]),
    ],
)
def test_bash_completes(in_bash, line, replies):
    assert in_bash(line) == replies


def test_bash_completes_at_the_cursor(lake):
    script = """
eval "$(lithify completion bash)"
COMP_LINE='lithify compact or --json' COMP_POINT=18
_lithify_completion lithify
echo "${COMPREPLY[@]}"
"""
    assert shell("bash", "--norc", "-c", script) == ["orders"]


@pytest.mark.parametrize("name", [kind.name for kind in SHELLS])
def test_the_script_is_printed(lithify, name):
    printed = lithify("completion", name)
    assert (f"{VARIABLE}={name}_complete" in printed.out, printed.err) == (True, "")
