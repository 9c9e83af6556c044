"""Kafka's own log cleaner, on a topic with the same records at the same offsets.

Its broker is that of the tests, as it comes, with one cleaner thread and the default buffer of 128 MiB. What the
broker does from the moment that its cleaner is enabled until it has cleaned the whole log counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cases import Log
from kafka_topics import clean, held_topic, produce, roll
from support.kafka.broker import KafkaBroker, a_broker, read_all  # type: ignore[import-not-found]
from way import KEPT, OfFiles

CODEC = "zstd"
"""That of Lithify's segments, too."""


class KafkaCleaner(OfFiles):
    """A round of the cleaner over a new topic."""

    def __init__(self) -> None:
        super().__init__()
        self._open = ExitStack()

    @cached_property
    def broker(self) -> KafkaBroker:
        return self._open.enter_context(a_broker(jvm=(), log_cleaner_threads="1"))

    def prepare(self, log: Log, out: Path) -> None:
        super().prepare(log, out)
        self.topic, columns = held_topic(self.broker), ["timestamp", "key", "value"]
        batches = (batch for path in log.paths for batch in pq.ParquetFile(path).iter_batches(columns=columns))
        self.end = produce(self.broker, self.topic, batches, CODEC)
        roll(self.broker, self.topic, log.segments[-1].max_timestamp_ms)

    def run(self) -> Mapping[str, float]:
        clean(self.broker, self.topic, self.end)
        return {}

    def kept(self) -> Iterable[pa.Table]:
        rows = [(one.offset(), one.key(), one.value()) for one in read_all(self.broker, self.topic)]
        offsets, keys, values = zip(*(row for row in rows if row[0] < self.end), strict=True)
        yield pa.table([pa.array(offsets), pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=KEPT)

    def close(self) -> None:
        self._open.close()
