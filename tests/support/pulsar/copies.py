"""A topic of a live Pulsar and its copy in the lake: ingests, and what the copy must be."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import pulsar
from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.pulsar.client import ClientConfig
from lithify.reports.ingest import IngestReport
from support.processes.programs import PROGRAM
from support.pulsar.clients import READ_MS, a_client
from support.pulsar.server import PulsarServer
from support.servers.tcp_proxy import POLL_S

COPIED_S = 180.0
SETTLED_S = 60.0
TRIMMED_S = 180.0
Stats = Mapping[str, Any]
"""The internal statistics of a topic."""
Message = tuple[MessageId, bytes | None, bytes, tuple[tuple[str, bytes], ...], int]
"""Id, key, payload, properties, publish time."""


@dataclass(frozen=True, slots=True)
class PulsarCopy:
    """`partitions` is 0 for a topic that is not partitioned."""

    lake: Lake
    server: PulsarServer
    session: SparkSession
    topic: str
    partitions: int = 0

    @property
    def config(self) -> ClientConfig:
        return ClientConfig(self.server.service_url, self.server.admin_url)

    @property
    def copy(self) -> Topic:
        return self.lake.topic(self.topic)

    def ingest(self, *, config: ClientConfig | None = None, **how: Any) -> IngestReport:
        (report,) = self.lake.ingest_pulsar(config or self.config, [self.topic], spark=self.session, **how)
        return report

    def produce(self, first: int, last: int, *, properties: Mapping[str, str] | None = None, **how: Any) -> None:
        """Messages with keys in turn, every tenth of them empty, every seventh without a key."""
        with a_client(self.server) as client:
            producer = client.create_producer(self.topic, block_if_queue_full=True, **how)
            for n in range(first, last):
                key = None if n % 7 == 6 else f"k{n % 5}"
                value = b"" if n % 10 == 9 else b"value %d \xff" % n
                producer.send_async(
                    value, _sent, partition_key=key, properties=dict(properties or {"n": str(n)}), event_timestamp=n + 1
                )
            producer.flush()

    def theirs(self) -> list[list[Message]]:
        """All messages, by partition, as Pulsar's own client reads them."""
        names = [self.topic] if not self.partitions else [f"{self.topic}-partition-{p}" for p in range(self.partitions)]
        with a_client(self.server) as client:
            return [_read(client, name) for name in names]

    def mine(self) -> list[list[Message]]:
        copy = self.copy
        return [[_message(record) for record in copy.reader(p)] for p in copy.state().partitions]

    def check_equal(self) -> None:
        """The copy has every message once, in order, and nothing else (C52)."""
        mine, theirs = self.mine(), self.theirs()
        assert [[m[0] for m in log] for log in mine] == [[m[0] for m in log] for log in theirs]
        assert mine == theirs
        for partition in self.copy.state().partitions:
            assert [r.offset for r in self.copy.reader(partition)] == list(range(len(mine[partition])))


def _sent(result: Any, _message_id: Any) -> None:
    assert result == pulsar.Result.Ok, result


def _read(client: pulsar.Client, name: str) -> list[Message]:
    reader, found = client.create_reader(name, pulsar.MessageId.earliest), []
    while reader.has_message_available():
        message = reader.read_next(timeout_millis=READ_MS)
        at = message.message_id()
        key = message.partition_key().encode() if message.partition_key() else None
        pairs = tuple(sorted((name, value.encode()) for name, value in message.properties().items()))
        place = MessageId(at.ledger_id(), at.entry_id(), at.batch_index())
        found.append((place, key, message.data(), pairs, message.publish_timestamp()))
    reader.close()
    return found


def _message(record: Record) -> Message:
    assert record.envelope is not None and record.timestamp is not None
    pairs = tuple(sorted((name, value or b"") for name, value in record.headers))
    return record.envelope.id, record.key, record.value or b"", pairs, record.timestamp


def namespace_retention(server: PulsarServer, topic: str, minutes: int) -> None:
    """Of this topic alone: what all subscriptions have passed is trimmed, or what nobody subscribed to."""
    policy = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": minutes}
    server.admin("POST", f"{topic.replace('://', '/')}/retention", json=policy)


def trim(copy: PulsarCopy) -> None:
    """Ends the ledger, and waits until the broker has deleted it.

    What a cursor is told while it gets a ledger of its own is lost if the topic is unloaded meanwhile: it stands where
    it stood before, and keeps the topic's ledger until the next acknowledgement. So that is waited for.
    """

    def settled(stats: Stats) -> bool:
        return all(cursor["state"] != "SwitchingLedger" for cursor in stats["cursors"].values())

    before = _ledgers(_stats_when(copy, settled, "a cursor gets no ledger", SETTLED_S))
    copy.server.unload(copy.topic)

    def gone(stats: Stats) -> bool:
        copy.server.admin("POST", f"{copy.topic.replace('://', '/')}/trim")
        return not before & _ledgers(stats)

    _stats_when(copy, gone, "nothing is trimmed", TRIMMED_S)


def _ledgers(stats: Stats) -> set[int]:
    return {ledger["ledgerId"] for ledger in stats["ledgers"]}


def _stats_when(copy: PulsarCopy, ready: Callable[[Stats], bool], what: str, timeout_s: float) -> Stats:
    """The topic's internal statistics, once they are so. The failure has them."""
    deadline = time.monotonic() + timeout_s
    while not ready(stats := copy.server.internal_stats(copy.topic)):
        assert time.monotonic() < deadline, f"{what}: ledgers {stats['ledgers']}, cursors {stats['cursors']}"
        time.sleep(POLL_S)
    return stats


def ingest_program(folder: Path, server: PulsarServer, *arguments: str) -> subprocess.Popen[bytes]:
    """`lithify pulsar ingest --json` as a program, into `folder/lake`; its output goes to `folder/out`."""
    command = [*PROGRAM, "--warehouse", str(folder / "lake"), "pulsar", "ingest", "--json", *arguments]
    command += ["--service-url", server.service_url, "--admin-url", server.admin_url]
    with (folder / "out").open("ab") as out, (folder / "err").open("ab") as err:
        return subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)


def wait_for_records(folder: Path, process: subprocess.Popen[bytes], more: int) -> None:
    """Until the program has committed so many records more than all before it had."""
    begun, deadline = _committed(folder), time.monotonic() + COPIED_S
    while _committed(folder) < begun + more:
        assert process.poll() is None, (folder / "err").read_text()[-3000:]
        assert time.monotonic() < deadline, (folder / "err").read_text()[-3000:]
        time.sleep(0.1)


def _committed(folder: Path) -> int:
    lines = (folder / "out").read_bytes().split(b"\n")[:-1]
    return sum(json.loads(line)["records"] for line in lines if b'"logs"' in line)
