"""A REST catalog as small as it gets: Iceberg's protocol in front of an SQL catalog.

PyIceberg's client speaks to it over HTTP, so that what we commit goes through JSON and back as it
does with any catalog service. `lose_answers` counts down commits that land and are answered 504.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import AssertCreate

LEVELS = "\x1f"


class RestCatalog(ThreadingHTTPServer):
    """Serves the catalog of a folder on a free port of this machine."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(("127.0.0.1", 0), _Handler)
        self.catalog = SqlCatalog("backing", uri=f"sqlite:///{folder}/rest.db", warehouse=f"file://{folder}/lake")
        self.lose_answers = 0
        self.before_commit: Callable[[], object] = lambda: None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def a_rest_catalog(folder: Path) -> Iterator[RestCatalog]:
    server = RestCatalog(folder)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.catalog.close()


class _Handler(BaseHTTPRequestHandler):
    server: RestCatalog

    def do_GET(self) -> None:
        catalog = self.server.catalog
        match self._route():
            case ["config"]:
                self._answer(200, {"defaults": {}, "overrides": {}})
            case ["namespaces"]:
                levels = [] if "parent=" in self.path else _all_levels(catalog, ())
                self._answer(200, {"namespaces": [[".".join(level)] for level in levels]})
            case ["namespaces", namespace]:
                try:
                    properties = catalog.load_namespace_properties((namespace,))
                except NoSuchNamespaceError as error:
                    self._fail(404, "NoSuchNamespaceException", error)
                    return
                self._answer(200, {"namespace": [namespace], "properties": properties})
            case ["namespaces", namespace, "tables"]:
                if not catalog.namespace_exists((namespace,)):
                    self._fail(404, "NoSuchNamespaceException", NoSuchNamespaceError(namespace))
                    return
                names = [table[-1] for table in catalog.list_tables((namespace,))]
                self._answer(200, {"identifiers": [{"namespace": [namespace], "name": name} for name in names]})
            case ["namespaces", namespace, "tables", table]:
                self._load(namespace, table)

    def do_HEAD(self) -> None:
        match self._route():
            case ["namespaces", namespace]:
                self._answer(204 if self.server.catalog.namespace_exists((namespace,)) else 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        catalog = self.server.catalog
        match self._route():
            case ["namespaces"]:
                wanted = json.loads(body)
                try:
                    catalog.create_namespace(tuple(wanted["namespace"]), wanted["properties"])
                except NamespaceAlreadyExistsError as error:
                    self._fail(409, "AlreadyExistsException", error)
                    return
                self._answer(200, wanted)
            case ["namespaces", namespace, "properties"]:
                wanted = json.loads(body)
                done = catalog.update_namespace_properties((namespace,), set(wanted["removals"]), wanted["updates"])
                self._answer(200, {"removed": done.removed, "updated": done.updated, "missing": done.missing})
            case ["namespaces", namespace, "tables"]:
                self._stage(namespace, json.loads(body))
            case ["namespaces", namespace, "register"]:
                wanted = json.loads(body)
                catalog.register_table((namespace, wanted["name"]), wanted["metadata-location"])
                self._load(namespace, wanted["name"])
            case ["namespaces", namespace, "tables", table]:
                self._commit((namespace, table), CommitTableRequest.model_validate_json(body))

    def do_DELETE(self) -> None:
        match self._route():
            case ["namespaces", namespace]:
                self.server.catalog.drop_namespace((namespace,))
                self._answer(204)
            case ["namespaces", namespace, "tables", table]:
                try:
                    self.server.catalog.drop_table((namespace, table))
                except NoSuchTableError as error:
                    self._fail(404, "NoSuchTableException", error)
                    return
                self._answer(204)

    def _load(self, namespace: str, name: str) -> None:
        try:
            table = self.server.catalog.load_table((namespace, name))
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            self._fail(404, "NoSuchTableException", error)
            return
        metadata = json.loads(table.metadata.model_dump_json())
        self._answer(200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}})

    def _stage(self, namespace: str, wanted: dict[str, Any]) -> None:
        assert wanted["stage-create"]
        staged = self.server.catalog._create_staged_table(
            (namespace, wanted["name"]),
            Schema.model_validate(wanted["schema"]),
            wanted.get("location"),
            PartitionSpec.model_validate(wanted["partition-spec"]),
            SortOrder.model_validate(wanted["write-order"]),
            wanted["properties"],
        )
        metadata = json.loads(staged.metadata.model_dump_json())
        self._answer(200, {"metadata-location": None, "metadata": metadata, "config": {}})

    def _commit(self, identifier: tuple[str, str], request: CommitTableRequest) -> None:
        table = type("Named", (), {"name": lambda _: identifier})()
        self.server.before_commit()
        if AssertCreate() not in request.requirements and not self.server.catalog.table_exists(identifier):
            self._fail(404, "NoSuchTableException", NoSuchTableError(f"no {identifier}"))
            return
        try:
            committed = self.server.catalog.commit_table(table, request.requirements, request.updates)
        except CommitFailedException as error:
            self._fail(409, "CommitFailedException", error)
            return
        if self.server.lose_answers:
            self.server.lose_answers -= 1
            self._fail(504, "CommitStateUnknownException", TimeoutError("gateway"))
            return
        metadata = json.loads(committed.metadata.model_dump_json())
        self._answer(200, {"metadata-location": committed.metadata_location, "metadata": metadata})

    def _route(self) -> list[str]:
        path = self.path.partition("?")[0].removeprefix("/v1/")
        return [unquote(part).replace(LEVELS, ".") for part in path.strip("/").split("/")]

    def _fail(self, status: int, kind: str, error: Exception) -> None:
        self._answer(status, {"error": {"message": str(error), "type": kind, "code": status}})

    def _answer(self, status: int, content: dict[str, Any] | None = None) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests say what went wrong."""


def _all_levels(catalog: SqlCatalog, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for namespace in catalog.list_namespaces(parent):
        if catalog.list_tables(namespace) or catalog.load_namespace_properties(namespace):
            yield namespace
        yield from _all_levels(catalog, namespace)
