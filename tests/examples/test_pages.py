"""The commands and programs of pages run in their order, from an empty folder: those that need no server."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.spark.session.start import session_factory
from support.pages.lists import EMBEDDED
from support.pages.shell import Shell, a_shell
from support.pages.text import Block, blocks
from support.pages.walk import Walk

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """Pages find it, as one program after the other would in a shell of Spark's."""
    session = session_factory(None, {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell({}) as shell:
        yield shell


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, in which a reader begins."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("page", EMBEDDED)
def test_a_page_runs_in_its_order(page: str, shell: Shell, session: SparkSession, tmp_path: Path) -> None:
    places = {f"{place}/": f"{tmp_path}{place}/" for place in ("/srv", "/data", "/mnt")}
    assert Walk(page, shell, places).run()
    for view in session.catalog.listTables():
        session.catalog.dropTempView(view.name)


def test_the_end_of_a_pipeline_may_ask_first() -> None:
    def left(_arguments: Sequence[str]) -> int:
        print("a line", flush=True)
        return 0

    def right(_arguments: Sequence[str]) -> int:
        print(f"got {sys.stdin.read()}")
        return 3

    with a_shell({"left": left, "right": right}) as shell:
        ended = shell("(sleep 0.5; left) | right")
    assert (ended.code, ended.printed) == (3, "got a line\n\n")


def test_the_program_of_the_readme_shows_its_topic(
    shell: Shell, session: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    walk = Walk("README.md", shell)
    (program,) = [block for block in blocks(walk.page) if block.language == "python"]
    walk.block(walk.first_block("run-it"), {})
    walk.block(program, {"spark": session})
    assert capsys.readouterr().out.count("orders") == 6


def test_the_page_on_upgrades_prints_what_one_prints(shell: Shell, folder: Path) -> None:
    """On a warehouse as an earlier version left it."""
    for topic in ("clicks", "orders"):
        lithify.open("./lithify-warehouse").create_topic(topic)
    (folder / "lithify-warehouse" / ".lithify" / "format.json").unlink()
    walk = Walk("docs/operate/upgrade.md", shell)
    assert sum(walk.block(block, {}) for block in blocks(walk.page)) == 2


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "false\n"),
        ("sh", "lithify topic info orders\n"),
        ("sh", "lithify topic list | false\n"),
        ("console", "$ echo one\ntwo\n"),
        ("console", "$ false\n"),
        ("python", "import lithify\n\nlithify.open('.').topic('orders').info()\n"),
    ],
)
def test_what_does_not_run_would_be_seen(shell: Shell, language: str, text: str) -> None:
    with pytest.raises((AssertionError, lithify.RefusedError)):
        Walk("README.md", shell).block(Block(language, text), {})
