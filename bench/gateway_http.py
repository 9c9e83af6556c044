"""Appends, reads and the overview of a gateway, over HTTP.

    python bench/gateway_http.py
    python bench/gateway_http.py --records 100000 --appends 20 --topics 1000

The server is a process of its own, without a cleaner; its clients are threads of this one. Records are of 200 bytes.

    append    16 clients append 100 records, wait for the answer, and append again        target 1,000 a second
    read      one client reads a topic whole                                              target 200 MB/s as Arrow
    status    one client asks for the overview; its topics are in memory, not tables      target 100 ms of 10,000 topics

The warehouse of the first two is on the disk of the temporary folder, its catalog in SQLite. The processor time is the
server's, with all threads; `client_s` that of the clients.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from uuid import uuid4

import pyarrow as pa

import lithify
from lithify.api.lake import Lake
from lithify.api.wiring.appends import append_notes_of
from lithify.gateway.access.hosts import AllowedHosts
from lithify.gateway.listening.bound import bind
from lithify.gateway.listening.guarded import GatewayTokens, guarded
from lithify.gateway.listening.listen import ListenAddress, Listening
from lithify.gateway.operations.records import ARROW, LINES
from lithify.gateway.process.serving import Serving
from lithify.gateway.server.app import Gateway, application
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.gateway.server.kinds import kind_of
from lithify.testing import memory_lake
from shown import Show, add_publish, shown

RECORDS, KEY_BYTES, VALUE_BYTES = 100, 16, 184
PATH = "/api/v1/topics/orders/records"


@dataclass(frozen=True, slots=True)
class Server:
    """The process of a gateway."""

    port: int
    pipe: Connection

    def used(self) -> tuple[float, float]:
        """Seconds of its processor time until now, and the most memory that it has taken, in MB."""
        self.pipe.send("used")
        seconds, memory_mb = self.pipe.recv()
        return seconds, memory_mb

    def connection(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=600)


def serve(folder: str, topics: int, pipe: Connection) -> None:
    """Serves until it is told to end: a warehouse, or so many topics in memory."""
    lake = memory_lake() if topics else lithify.open(folder)
    for number in range(topics):
        lake.create_topic(f"topic{number}")
    bound, clock = bind(ListenAddress("127.0.0.1", 0)), lake.warehouse.clock
    gateway = Gateway("bench", lake, Jobs(clock, 1, lambda _: None), notes=append_notes_of(lake.warehouse, None))
    listening = Listening(ListenAddress("127.0.0.1", 0), needs_token=False)
    tokens = GatewayTokens(None, clock)
    serving = Serving(guarded(application(gateway), listening, tokens, hosts=AllowedHosts(), kind_of=kind_of), bound)
    serving.start()
    pipe.send(bound.address.port)
    while pipe.recv() == "used":
        pipe.send((time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    serving.close()


@contextmanager
def served(folder: str, topics: int = 0) -> Iterator[Server]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, topics, there))
    process.start()
    try:
        yield Server(here.recv(), here)
    finally:
        here.send("end")
        process.join(30)
        process.kill()


def table(records: int) -> pa.Table:
    """Records with random keys and values."""
    keys, values = (
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), records, [None, pa.py_buffer(os.urandom(size * records))])
        for size in (KEY_BYTES, VALUE_BYTES)
    )
    return pa.table({"key": keys.cast(pa.binary()), "value": values.cast(pa.binary())})


def arrow_body() -> bytes:
    sink, records = pa.BufferOutputStream(), table(RECORDS)
    with pa.ipc.new_stream(sink, records.schema) as writer:
        writer.write_table(records)
    return bytes(sink.getvalue())


def lines_body() -> bytes:
    """Text of the same size as the records of the other body."""
    texts = [(b64encode(os.urandom(12)).decode(), b64encode(os.urandom(138)).decode()) for _ in range(RECORDS)]
    return "".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in texts).encode()


def append(server: Server, media: str, body: bytes, *, keyed: bool, count: int) -> None:
    """One client: it appends so often, each time after the answer to the time before."""
    connection = server.connection()
    for _ in range(count):
        key = {"Idempotency-Key": uuid4().hex} if keyed else {}
        connection.request("POST", PATH, body, {"Content-Type": media, **key})
        assert json.loads(connection.getresponse().read())["records"] == RECORDS
    connection.close()


def appending(server: Server, show: Show, lake: Lake, clients: int, appends: int) -> None:
    topic = lake.create_topic("orders", 4)

    def version() -> int:
        return lake.warehouse.store.load(topic.topic_name).version

    for media, body, keyed in ((LINES, lines_body(), False), (ARROW, arrow_body(), False), (ARROW, arrow_body(), True)):
        client = partial(append, server, media, body, keyed=keyed)
        with ThreadPoolExecutor(clients) as pool:
            wait([pool.submit(client, count=2) for _ in range(clients)])  # imports, connections
            before = version()
            begun, used, own = time.perf_counter(), server.used()[0], time.process_time()
            for done in [pool.submit(client, count=appends) for _ in range(clients)]:
                done.result()
            seconds, cpu_s, client_s = time.perf_counter() - begun, server.used()[0] - used, time.process_time() - own
        count = clients * appends
        show(
            what="append",
            media=media,
            keyed=keyed,
            clients=clients,
            appends_per_s=round(count / seconds),
            appends_per_commit=round(count / (version() - before), 1),
            processor_ms=round(1000 * cpu_s / count, 2),
            client_s=round(client_s, 2),
        )


def reading(server: Server, show: Show, lake: Lake, records: int, times: int) -> None:
    topic, step = lake.create_topic("large"), 100_000
    for start in range(0, records, step):
        topic.append(table(min(step, records - start)))
    for media in (ARROW, LINES):
        taken: list[tuple[float, float, float, int]] = []
        for _ in range(times):
            begun, used, own = time.perf_counter(), server.used()[0], time.process_time()
            connection, size = server.connection(), 0
            query = "?encoding=base64" if media == LINES else ""
            connection.request("GET", f"/api/v1/topics/large/records{query}", headers={"Accept": media})
            answer = connection.getresponse()
            while part := answer.read(2**20):
                size += len(part)
            connection.close()
            ended, after = time.perf_counter(), server.used()[0]
            taken.append((ended - begun, after - used, time.process_time() - own, size))
        seconds, cpu_s, client_s, sizes = zip(*taken, strict=True)
        data_mb = records * (KEY_BYTES + VALUE_BYTES) / 1e6
        show(
            what="read",
            media=media,
            records=records,
            sent_mb=round(sizes[0] / 1e6, 1),
            mb_per_s=round(data_mb / statistics.median(seconds)),
            cpu_s=round(statistics.median(cpu_s), 2),
            client_s=round(statistics.median(client_s), 2),
            server_peak_mb=round(server.used()[1]),
        )


def status(show: Show, topics: int, times: int) -> None:
    with served("", topics) as server:
        connection, taken = server.connection(), []
        for _ in range(times + 1):
            begun, used = time.perf_counter(), server.used()[0]
            connection.request("GET", "/api/v1/status")
            size = len(connection.getresponse().read())
            taken.append((time.perf_counter() - begun, server.used()[0] - used))
        connection.close()
        first, *warm = taken
        show(
            what="status",
            topics=topics,
            sent_mb=round(size / 1e6, 1),
            first_ms=round(1000 * first[0]),
            warm_ms=round(1000 * statistics.median(seconds for seconds, _ in warm)),
            processor_ms=round(1000 * statistics.median(cpu_s for _, cpu_s in warm)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--appends", type=int, default=200, help="of each client")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the topic that is read")
    parser.add_argument("--topics", type=int, default=10_000, help="of the overview")
    parser.add_argument("--times", type=int, default=5, help="reads, and overviews")
    add_publish(parser)
    asked = parser.parse_args()
    with shown(asked) as show:
        with tempfile.TemporaryDirectory() as folder:
            lake = lithify.open(folder)
            with served(folder) as server:
                appending(server, show, lake, asked.clients, asked.appends)
                reading(server, show, lake, asked.records, asked.times)
        status(show, asked.topics, asked.times)


if __name__ == "__main__":
    main()
