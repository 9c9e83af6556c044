"""The names in a warehouse at a glance, as a shell completes them: reads only, and gives up rather than waits.

    a directory    its catalog's SQLite file is read as it is        takes milliseconds
    a catalog      PyIceberg lists it, in a thread                   `PATIENCE_S` at most, as a server may be asked

Tables of other programs in a catalog are listed as well, since only their metadata distinguishes them from topics.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import quote

from lithify.api.wiring import COORDINATION_VARIABLE, groups_of, open_warehouse
from lithify.api.wiring.place import default_place
from lithify.api.wiring.scopes import source_of
from lithify.model.names import TopicName, in_order, original_stream
from lithify.model.stored_file import LOCAL_SCHEME, local_folder
from lithify.ports.store import Warehouse

PATIENCE_S = 3.0
BUSY_S = 0.5
"""How long a commit to the SQLite file is waited for."""

_TABLES = "SELECT table_namespace, table_name FROM iceberg_tables"
_SPACES = "SELECT DISTINCT namespace FROM iceberg_namespace_properties WHERE property_key LIKE 'lithify.stream%'"
_IDENTITY = "SELECT property_value FROM iceberg_namespace_properties WHERE property_key = 'lithify.warehouse-id'"
_GROUPS = "SELECT DISTINCT consumer_group FROM lithify_positions WHERE scope = ?"
_REPLICAS = "SELECT name FROM lithify_replicas WHERE scope = ?"
_JOBS = "SELECT name FROM lithify_standing_jobs WHERE scope = ?"
_TOKENS = "SELECT name FROM lithify_tokens WHERE scope = ?"


@dataclass(frozen=True, slots=True)
class CompletionNames:
    """The place to read: the one that the flags name, else the default. Raises nothing: what cannot be read is empty.

    `coordination_url` is the database of groups, replicas and tokens.
    """

    warehouse: str | None = None
    catalog: str | None = None
    coordination_url: str | None = None

    def topics(self) -> list[str]:
        return self._names(lambda folder: _topics(_rows(folder, _TABLES)), lambda: _topics(self._listed()))

    def streams(self) -> list[str]:
        def read(folder: Path) -> Iterable[str]:
            spaces = {row[0] for row in (*_rows(folder, _TABLES), *_rows(folder, _SPACES))}
            return map(original_stream, spaces)

        return self._names(read, lambda: (original_stream(".".join(table[:-1])) for table in self._listed()))

    def groups(self) -> list[str]:
        def ask() -> Iterable[str]:
            return {position.group for position in groups_of(self._opened(), self._database()).positions()}

        return self._names(lambda folder: _of_scope(folder, _GROUPS), ask, shared=True)

    def replicas(self) -> list[str]:
        def ask() -> Iterable[str]:
            from lithify.api.wiring.replicas import replicas_of

            return {one.name for one in replicas_of(self._opened(), self._database()).definitions()}

        return self._names(lambda folder: _of_scope(folder, _REPLICAS), ask, shared=True)

    def standing_jobs(self) -> list[str]:
        def ask() -> Iterable[str]:
            from lithify.api.wiring.shared_place import shared_place
            from lithify.coordination.leases.gateways.jobs_sql import open_standing_jobs

            jobs = open_standing_jobs(*shared_place(self._opened(), self._database(), makes=False))
            return {stored.job.name for stored in jobs.jobs()}

        return self._names(lambda folder: _of_scope(folder, _JOBS), ask, shared=True)

    def tokens(self) -> list[str]:
        def ask() -> Iterable[str]:
            from lithify.api.wiring.tokens import tokens_of

            return {token.name for token in tokens_of(self._opened(), self._database()).all()}

        return self._names(lambda folder: _of_scope(folder, _TOKENS), ask, shared=True)

    def _names(
        self, read: Callable[[Path], Iterable[str]], ask: Callable[[], Iterable[str]], *, shared: bool = False
    ) -> list[str]:
        """Sorted: read from the file of a directory, else asked for; `shared` names may be in another database."""
        try:
            folder = self._folder()
            if folder is not None and not (folder / "catalog.db").is_file():
                return []
            if folder is not None and not (shared and self._database()):
                return sorted(read(folder), key=in_order)
            return sorted(_soon(ask), key=in_order)
        except Exception:  # whatever it is, a verb will say it
            return []

    def _place(self) -> tuple[str | None, str | None]:
        return default_place() if self.warehouse is None and self.catalog is None else (self.warehouse, self.catalog)

    def _folder(self) -> Path | None:
        """The directory, if the place is one."""
        warehouse, catalog = self._place()
        if warehouse is None or catalog is not None:
            return None
        path = LOCAL_SCHEME.sub("", warehouse)
        return local_folder(path)

    def _database(self) -> str | None:
        """The database of groups that is not the catalog's own."""
        url = self.coordination_url or os.environ.get(COORDINATION_VARIABLE) or None
        if url is not None and url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
            raise FileNotFoundError(url)  # it would be created
        return url

    def _listed(self) -> list[tuple[str, ...]]:
        from lithify.store.iceberg.catalog.listing import tables_of

        catalog = source_of(self._opened()).existing()
        return [] if catalog is None else tables_of(catalog)

    def _opened(self) -> Warehouse:
        return open_warehouse(*self._place())


def _topics(tables: Iterable[tuple[str, ...]]) -> Iterable[str]:
    return (str(TopicName(".".join(table[:-1]), table[-1])) for table in tables)


def _of_scope(folder: Path, query: str) -> Iterable[str]:
    identity = next((row[0] for row in _rows(folder, _IDENTITY)), f"file://{folder}")
    return (row[0] for row in _rows(folder, query, identity))


def _rows(folder: Path, query: str, *parameters: str) -> list[tuple[str, ...]]:
    """None if there is no such table."""
    url = f"file:{quote(str(folder))}/catalog.db?mode=ro"
    with closing(sqlite3.connect(url, uri=True, timeout=BUSY_S)) as connection:
        try:
            return list(connection.execute(query, parameters))
        except sqlite3.OperationalError:
            return []


def _soon(ask: Callable[[], Iterable[str]]) -> list[str]:
    """What it returns within `PATIENCE_S`, or nothing; its thread ends with the process."""
    answers: SimpleQueue[list[str]] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(list(ask()))
        except Exception:
            answers.put([])

    Thread(target=run, daemon=True).start()
    try:
        return answers.get(timeout=PATIENCE_S)
    except Empty:
        return []
