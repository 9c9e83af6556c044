"""How many appends of 100 records of 200 bytes a gateway acknowledges in a second, with 16 clients at a time.

    python bench/gateway_appends.py

Each client is a thread that appends, waits for the answer, and appends again; there is no HTTP in it. The target is
1,000 a second. `alone` are the same threads with an append of their own each, as without a gateway. The warehouse is on
the disk of the temporary folder, its catalog in SQLite, and every commit is on disk before it is acknowledged. The
processor time is of the whole process, with all threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from lithify.api.wiring import open_warehouse
from lithify.api.wiring.appends import append_notes_of
from lithify.gateway.appends.appends import Appends
from lithify.gateway.appends.keys import AppendKey
from lithify.model.names import TopicName, TopicReference
from lithify.service.creation import create_topic
from lithify.service.write.append import append
from shown import shown

RECORDS, KEY_BYTES, VALUE_BYTES = 100, 16, 184

Append = Callable[[TopicName, pa.Table], object]


def batch() -> pa.Table:
    """Records with random keys and values."""
    keys, values = ([os.urandom(size) for _ in range(RECORDS)] for size in (KEY_BYTES, VALUE_BYTES))
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def rate(do: Append, topic: TopicName, clients: int, appends: int) -> tuple[float, float]:
    """Appends in a second, and ms of processor time for each; of so many clients, which append so often each."""
    table = batch()

    def client(_: int) -> None:
        for _ in range(appends):
            do(topic, table)

    begun, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    count = clients * appends
    return count / (time.perf_counter() - begun), 1000 * (time.process_time() - used) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--appends", type=int, default=50, help="of each client")
    parser.add_argument("--times", type=int, default=5, help="runs of each way, in turns")
    parser.add_argument("--partitions", type=int, default=4)
    asked = parser.parse_args()
    with shown(asked) as show, tempfile.TemporaryDirectory() as folder:
        warehouse = open_warehouse(str(Path(folder)))
        name = TopicName("default", "orders")
        create_topic(warehouse, TopicReference(name, "orders"), {}, asked.partitions)
        appends = Appends(warehouse, append_notes_of(warehouse, None))
        ways: dict[str, Append] = {
            "joined": appends.append,
            "joined, with keys": lambda topic, table: appends.append(topic, table, AppendKey.of(uuid4().hex, b"")),
            "alone": lambda topic, table: append(warehouse, topic, table),
        }
        for do in ways.values():
            rate(do, name, asked.clients, 1)  # imports, connections, the first note
        taken: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
        for _ in range(asked.times):
            for way, do in ways.items():
                few = 1 if way == "alone" else asked.appends
                before = warehouse.store.load(name).version
                measured = rate(do, name, asked.clients, few)
                commits = warehouse.store.load(name).version - before
                taken[way].append((*measured, asked.clients * few / commits))
        for way, runs in taken.items():
            rates, processor_ms, joined = zip(*runs, strict=True)
            show(
                way=way,
                clients=asked.clients,
                appends_per_s=round(statistics.median(rates)),
                appends_per_commit=round(statistics.median(joined), 1),
                processor_ms=round(statistics.median(processor_ms), 2),
            )


if __name__ == "__main__":
    main()
