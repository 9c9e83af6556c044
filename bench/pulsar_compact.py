"""Rounds of a live Pulsar topic against Pulsar's own compactor, on the same topic, broker on the same machine.

    PYTHONPATH=src:tests python bench/pulsar_compact.py batched [--messages 5000000] [--keys 1000000]
    PYTHONPATH=src:tests python bench/pulsar_compact.py unbatched [--messages 1000000]
    PYTHONPATH=src:tests python bench/pulsar_compact.py increment [--keys 1000000] [--new 50000]
    PYTHONPATH=src:tests python bench/pulsar_compact.py memory [--keys 200000] [--task-memory 64MiB]

The first two write the topic once and have each compactor make a first view of it, in turns; the view is dropped
in between. The third sends new messages to a topic that has a view, and has them compacted, in turns. All need
the tests' broker, as it comes; our rounds are on one warm Spark session, small ones without it. The fourth needs no
broker: it prints the most memory that one of Spark's Python workers held, on entries from a file.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped]
from lithify.api.pulsar import LiveTopic, client_config
from lithify.model.message import MessageId
from lithify.ports.engine import RunLimits
from lithify.ports.pulsar.views import PlannedView, ViewRules, WrittenView
from lithify.pulsar.format.entry import RawEntry
from lithify.spark.pulsar.engine import PulsarEngine
from lithify.spark.session.start import session_factory
from lithify.spark.tasks import Pace
from shown import add_publish, shown
from support.pulsar.entries import Sent, batch  # type: ignore[import-not-found]
from support.pulsar.jars import pulsar_jars  # type: ignore[import-not-found]
from support.pulsar.ledgers import LedgerFolder  # type: ignore[import-not-found]
from support.pulsar.server import PulsarServer, a_pulsar  # type: ignore[import-not-found]
from support.pulsar.topics import StoredTopic, ranges_of  # type: ignore[import-not-found]

VALUE_BYTES = 100
STRIDE = 7_919
BATCH = 1000


def send(server: PulsarServer, topic: str, count: int, keys: int, *, batched: bool, start: int = 0) -> None:
    noise = os.urandom(2 * VALUE_BYTES)
    client = pulsar.Client(server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        topic,
        batching_enabled=batched,
        batching_max_messages=BATCH,
        batching_max_publish_delay_ms=20,
        block_if_queue_full=True,
        max_pending_messages=20_000,
    )
    for number in range(start, start + count):
        first = number % VALUE_BYTES
        key = f"key-{number * STRIDE % keys:08}"
        producer.send_async(noise[first : first + VALUE_BYTES], _ignore, partition_key=key)
    producer.flush()
    client.close()


def _ignore(*_: object) -> None:
    """The flush at the end waits for all."""


def theirs(server: PulsarServer, topic: str) -> float:
    began = time.monotonic()
    server.compact(topic)
    return time.monotonic() - began


def ours(server: PulsarServer, topic: str, session: Any, keys: int) -> float:
    """Checks that a message of every key is left."""
    began = time.monotonic()
    live = LiveTopic(topic, client_config(server.service_url, server.admin_url))
    report = live.compact(spark=session, jars=str(pulsar_jars()))
    assert report.changed and report.partitions[0].messages_out == keys, report
    return time.monotonic() - began


def drop(server: PulsarServer, topic: str) -> None:
    LiveTopic(topic, client_config(server.service_url, server.admin_url)).uncompact()


def first_views(server: PulsarServer, session: Any, flags: argparse.Namespace) -> Iterator[dict[str, object]]:
    topic = server.make_topic()
    send(server, topic, flags.messages, flags.keys, batched=flags.case == "batched")
    for _ in range(flags.repeat):
        seconds = {"pulsar_s": theirs(server, topic)}
        drop(server, topic)
        seconds["lithify_s"] = ours(server, topic, session, flags.keys)
        drop(server, topic)
        yield {"messages": flags.messages, "keys": flags.keys, **_rounded(seconds)}


def increments(server: PulsarServer, session: Any, flags: argparse.Namespace) -> Iterator[dict[str, object]]:
    topic = server.make_topic()
    send(server, topic, flags.keys, flags.keys, batched=True)
    ours(server, topic, session, flags.keys)
    at = flags.keys
    for _ in range(flags.repeat):
        seconds = {}
        for name in ("pulsar_s", "lithify_s"):
            send(server, topic, flags.new, flags.keys, batched=True, start=at)
            at += flags.new
            seconds[name] = theirs(server, topic) if name == "pulsar_s" else ours(server, topic, session, flags.keys)
        yield {"keys": flags.keys, "new_messages": flags.new, **_rounded(seconds)}


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(figure, 2) for name, figure in seconds.items()}


def memory(session: Any, flags: argparse.Namespace) -> dict[str, object]:
    """One round of a stored topic whose messages all have keys of their own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ledgers").mkdir()
        entries = [_a_batch(number) for number in range(flags.keys // BATCH)]
        topic = StoredTopic.of(folder, entries, at_once=20)
        engine = PulsarEngine(
            lambda: session,
            lambda _partition, _small_entries: topic,
            LedgerFolder(folder / "ledgers"),
            os.cpu_count() or 1,
            Pace(time.monotonic, time.sleep),
            lambda: "seed",
        )
        view = PlannedView("p", ranges_of(entries, cuts=max(1, flags.keys // 500_000)), MessageId(*entries[-1][:2]))
        peak = {"bytes": 0}

        def watch(_phase: str, _done: int, _total: int) -> None:
            peak["bytes"] = max(peak["bytes"], _largest_worker())

        began = time.monotonic()
        written = engine.write([view], ViewRules(), RunLimits(task_memory_bytes=flags.task_memory), "run", watch)["p"]
        assert isinstance(written, WrittenView), written
        assert written.messages_out == flags.keys
        return {"keys": flags.keys, "round_s": time.monotonic() - began, "worker_mib": peak["bytes"] // 2**20}


def _a_batch(number: int) -> RawEntry:
    sent = [Sent(f"key-{number * BATCH + n:08}", b"v" * VALUE_BYTES) for n in range(BATCH)]
    return batch(5, number, sent)  # type: ignore[no-any-return]


def _largest_worker() -> int:
    """The most bytes that one Python process below this one has held; Linux only."""
    parents, peaks = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended
            continue
        number = int(status.parent.name)
        parents[number] = int(fields["PPid"])
        if fields["Name"].strip().startswith("python"):
            peaks[number] = 1024 * int(fields.get("VmHWM", "0").split()[0])

    def is_ours(number: int) -> bool:
        above = parents.get(number, 0)
        return above == os.getpid() or (above > 1 and is_ours(above))

    return max((peak for number, peak in peaks.items() if is_ours(number)), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=("batched", "unbatched", "increment", "memory"))
    parser.add_argument("--messages", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--new", type=int, default=50_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--task-memory", type=int, default=2**30)
    add_publish(parser)
    flags = parser.parse_args()
    session = session_factory(None, {})()
    session.range(1).mapInArrow(lambda batches: batches, "id long").toArrow()
    with shown(flags) as show:
        if flags.case == "memory":
            show(case=flags.case, **memory(session, flags))
            return
        with a_pulsar(jvm=()) as server:
            rounds = increments if flags.case == "increment" else first_views
            for figures in rounds(server, session, flags):
                show(case=flags.case, **figures)


if __name__ == "__main__":
    main()
