"""Pulsar's own compactor, on a topic with the same records, in batches of up to a thousand.

Its broker is that of the tests, with 4 GB of heap. Its times of events are offsets: they show which record is which.
An empty payload is a delete, which the compactor drops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

import pulsar  # type: ignore[import-untyped]
from cases import Log
from support.pulsar.server import PulsarServer, a_pulsar  # type: ignore[import-not-found]
from way import KEPT, OfFiles

BATCH = 1000
HEAP = ("-Xmx4g", "-XX:MaxDirectMemorySize=1g")
"""The compactor has all keys on the heap: 512 MB are too few for 4 M."""


class PulsarCompactor(OfFiles):
    """A first compaction of a new topic."""

    keeps_tombstones: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._open = ExitStack()

    @cached_property
    def server(self) -> PulsarServer:
        return self._open.enter_context(a_pulsar(jvm=HEAP))

    def prepare(self, log: Log, out: Path) -> None:
        super().prepare(log, out)
        self.topic = self.server.make_topic()
        with self._client() as client:
            producer = client.create_producer(
                self.topic,
                batching_enabled=True,
                batching_max_messages=BATCH,
                batching_max_publish_delay_ms=20,
                block_if_queue_full=True,
                max_pending_messages=20 * BATCH,
                compression_type=pulsar.CompressionType.ZSTD,
            )
            for path in log.paths:
                for batch in pq.ParquetFile(path).iter_batches(columns=KEPT):
                    for offset, key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        name = key.decode()
                        producer.send_async(value or b"", _sent, partition_key=name, event_timestamp=offset + 1)
            producer.flush()

    def run(self) -> Mapping[str, float]:
        self.server.compact(self.topic)
        return {}

    def kept(self) -> Iterable[pa.Table]:
        rows = []
        with self._client() as client:
            reader = client.create_reader(self.topic, pulsar.MessageId.earliest, is_read_compacted=True)
            while reader.has_message_available():
                record = reader.read_next()
                if not record.event_timestamp():  # the client shows what was compacted out of a batch, without content
                    continue
                rows.append((record.event_timestamp() - 1, record.partition_key().encode(), record.data()))
        offsets, keys, values = zip(*rows, strict=True)
        yield pa.table([pa.array(offsets), pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=KEPT)

    def close(self) -> None:
        self._open.close()

    @contextmanager
    def _client(self) -> Iterator[Any]:
        client = pulsar.Client(self.server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        try:
            yield client
        finally:
            client.close()


def _sent(*_: object) -> None:
    """The flush at the end waits for all."""
