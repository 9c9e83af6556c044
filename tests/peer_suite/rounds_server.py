"""Rounds by HTTP, on one warm Spark session, for brokers that call one where they would compact a topic themselves.

POST {"topic", "service_url", "admin_url", "retain_null_key", "order"}  ─►  200, the number of the compacted ledger
                                                                           500, why the round failed
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from lithify.api.limits import DEFAULT_TASK_MEMORY, run_limits
from lithify.api.pulsar import client_config
from lithify.api.wiring import BookKeeperChoice, pulsar_ports
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.errors import LithifyError
from lithify.pulsar.live.live_cluster import LiveCluster
from lithify.service.pulsar.rounds import RoundRequest, compact_topic

NO_LEDGER = -1
ONE_BOOKIE = (1, 1, 1)


class AskedByBroker(LiveCluster):
    """A cluster whose broker has called the round, so that its own compaction runs, and is this round."""

    def is_compacting(self, partition: str) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class RoundsServer:
    """`jars` is a folder with Pulsar's jars."""

    spark: Any
    jars: Path

    def compact(self, wanted: Mapping[str, Any]) -> int:
        """The ledger of a topic's view after a round; -1 if it has none. Raises `LithifyError`."""
        config = client_config(wanted["service_url"], wanted["admin_url"])
        choice, bookkeeper = SparkChoice(self.spark, {}), BookKeeperChoice(wanted["metadata_url"], ONE_BOOKIE)
        world = replace(pulsar_ports(config, choice, str(self.jars), bookkeeper), cluster=AskedByBroker(config))
        limits = run_limits(DEFAULT_TASK_MEMORY, None, None)
        request = RoundRequest(wanted["topic"], wanted["retain_null_key"], wanted["order"], limits)
        (report,) = compact_topic(world, request, lambda _phase, _done, _total: None).partitions
        if report.error is not None:
            raise LithifyError(report.error)
        return NO_LEDGER if report.compacted_ledger is None else report.compacted_ledger

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Its address, as long as it takes requests."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, rounds: RoundsServer, *arguments: Any) -> None:
        self._rounds = rounds
        super().__init__(*arguments)

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            status, answer = HTTPStatus.OK, str(self._rounds.compact(wanted))
        except Exception as error:
            status, answer = HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}"
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: Any) -> None:
        """What requests there were is of no interest."""
