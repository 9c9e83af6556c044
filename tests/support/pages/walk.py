"""Runs a page from its first line to its last, as a reader does who begins in an empty folder.

A page says itself what it needs before, in the paragraph "You need": links in it lead to the pages that make it.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from support.pages.lists import RUN_BY, reason_not_to_run
from support.pages.shell import Ended, Shell
from support.pages.text import RUNNABLE, Block, Command, alike, blocks, blocks_of, commands, prose, section, text_of

NEEDED = frozenset(
    {
        "README.md#run-it",
        "docs/data-in/ingest-kafka.md",
        "docs/data-in/ingest-pulsar.md",
        "docs/data-out/consumer-groups.md",
        "docs/recover/replicas.md",
        "docs/recover/replicas.md#with-the-positions-of-consumer-groups",
        "docs/start/from-kafka-to-the-lake.md#a-topic-in-kafka",
    }
)
"""Where links in "You need" lead to: the first block there that can run makes what is needed."""

PREVIEW = 2
"""The exit code of what shows only what it would do, and names `--yes`."""


@dataclass(frozen=True, slots=True)
class Walk:
    """`places` are paths and addresses of a page, and what stands for them here."""

    page: str
    shell: Shell
    places: Mapping[str, str] = field(default_factory=dict)
    servers: tuple[str, ...] = ()

    def run(self) -> int:
        """How many commands and programs there were to run."""
        self.prepare(set())
        names: dict[str, Any] = {"__name__": "__main__"}
        walked = [one for one in blocks(self.page) if (self.page, one.language) not in RUN_BY]
        return sum(self.block(block, names) for block in walked)

    def prepare(self, done: set[str]) -> None:
        """Makes what the page says that it needs, and before it what that needs."""
        for target in needed(self.page):
            if target not in done:
                done.add(target)
                before = replace(self, page=target.partition("#")[0])
                before.prepare(done)
                before.block(before.first_block(target.partition("#")[2]), {})

    def first_block(self, anchor: str) -> Block:
        """The first under a heading that can run; under the title if `anchor` is empty."""
        found = (block for block in blocks_of(section(text_of(self.page), anchor)) if block.language in RUNNABLE)
        return next(block for block in found if not reason_not_to_run(block.text, self.servers))

    def block(self, block: Block, names: dict[str, Any]) -> int:
        """Whole or not at all: what a command makes is what the next ones need."""
        if reason_not_to_run(block.text, self.servers):
            return 0
        typed = commands(block)
        for command in typed:
            self._command(command)
        if block.language == "sql":
            self._query(block.text)
        elif block.language == "python":
            self._program(block, names)
        return len(typed) or block.language in ("sql", "python")

    def _program(self, block: Block, names: dict[str, Any]) -> None:
        with redirect_stdout(StringIO()) as printed:
            exec(compile(self._here(block.text), self.page, "exec"), names)
        assert not block.shown or printed.getvalue().splitlines() == block.shown.splitlines()
        print(printed.getvalue())

    def _command(self, command: Command) -> None:
        ended = self.shell(self._here(command.typed))
        if not command.shown:
            self._check_code(command, ended)
        else:
            assert (ended.code != 0) == ("error[" in command.shown), (command.typed, ended)
            assert alike(ended.printed) == alike(self._here(command.shown)), command.typed

    def _check_code(self, command: Command, ended: Ended) -> None:
        """A command that the page repeats with `--yes` may be a preview, which ends with 2."""
        repeated = f"{command.typed} --yes\n" in text_of(self.page)
        assert ended.code == 0 or (repeated and ended.code == PREVIEW), (command.typed, ended)

    def _query(self, text: str) -> None:
        """In the engine that has the tables: DuckDB attaches a file, Spark has views, or there is a file of SQLite."""
        statements = [part for part in re.split(r";\s*$", self._here(text), flags=re.MULTILINE) if part.strip()]
        if "ATTACH" in text:
            with duckdb.connect() as connection:
                for statement in statements:
                    connection.sql(statement)
        elif "USING lithify" in text:
            for statement in statements:
                SparkSession.builder.getOrCreate().sql(statement).collect()
        else:
            (file,) = Path().glob("*.db")
            connection = sqlite3.connect(file)
            for statement in statements:
                assert connection.execute(statement).fetchall()
            connection.close()

    def _here(self, text: str) -> str:
        for place, stand_in in self.places.items():
            text = re.sub(rf"(?<![\w*./]){re.escape(place)}", stand_in, text)  # "data/" may also be within a path
        return text


def needed(page: str) -> Iterator[str]:
    """Those of `NEEDED` to which "You need" of the page leads, in its order."""
    paragraphs = [part for part in prose(text_of(page)).split("\n\n") if "You need" in part]
    for link in re.findall(r"\]\((\S+?)\)", " ".join(paragraphs)):
        target = os.path.normpath(Path(page).parent / link)
        if target in NEEDED:
            yield target
