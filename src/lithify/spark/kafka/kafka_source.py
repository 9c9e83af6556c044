"""A Kafka cluster as the source of an ingest: its admin client, and Spark's Kafka source (`ports/source.py`).

A copy has the compaction settings of Kafka's topic, but not its retention: the lake keeps the history, and only
`--config` makes a copy delete records by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from lithify.errors import BrokerError
from lithify.model.sources.ends import DEFAULT_MS, StableEnds, delete_retention_ms
from lithify.model.sources.source import IngestRequest, SourceLog, SourcePosition, SourceTopic
from lithify.model.topic.state import TopicState
from lithify.ports.source import CopyKeys, OnBatch, SourceStream
from lithify.reports.ingest import IngestedLog, IngestNote, TellNote
from lithify.rules.lifecycle.copies.copy_continuation import (
    CopyContinuation,
    SourceWasCut,
    SourceWentBack,
    epochs_to_ask,
)
from lithify.spark.kafka.batch_limit import offsets_at_once
from lithify.spark.kafka.compared import CopiedSigns, compared
from lithify.spark.kafka.kafka_cluster import KafkaCluster
from lithify.spark.kafka.kafka_stream import StreamPlan, TopicStream
from lithify.spark.kafka.resync_batch import ResyncBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_AGE, MAX_AGE_MS = "metadata.max.age.ms", 300_000
"""Kafka's setting for how long a client may not notice new topics, and its default."""

_SAME = (
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "min.cleanable.dirty.ratio",
    "delete.retention.ms",
)
_LIMITS = ("retention.ms", "retention.bytes")
_NO_LIMIT = 2**63 - 1


class KafkaSource(KafkaCluster):
    """Streams of its topics are Spark's. A context manager, as the cluster is."""

    system = "Kafka"

    def __init__(
        self,
        session: SparkSession,
        request: IngestRequest,
        stops: Callable[[], bool],
        notes: TellNote,
        copied: CopiedSigns,
    ) -> None:
        """`copied` has what copies have."""
        super().__init__(session, request.config, stops)
        self._copied = copied
        self._session, self._request, self._notes = session, request, notes
        self._streams: list[TopicStream] = []

    @property
    def is_silent(self) -> bool:
        return not self.answers() or any(stream.asks_for_offsets for stream in self._streams)

    @property
    def drops(self) -> Self:
        return self

    @property
    def look_interval_ms(self) -> int:
        return int(self._request.config.get(MAX_AGE, MAX_AGE_MS))

    def settings(self, topic: str, config: Mapping[str, object]) -> Mapping[str, object]:
        """Raises `InvalidSettingError` or `BrokerError`."""
        theirs = self.config(topic)
        mine = settings_like(theirs, config)
        text = f"{self._request.target(topic)}: {_taken_over(theirs, mine, config)}"
        self._notes(IngestNote("settings", text, source=topic))
        return mine

    def own_config(self, topic: str) -> Mapping[str, str] | None:
        """None without the right to ask for them, which an ingest does not need otherwise."""
        with suppress(BrokerError):
            return self.config(topic, own=True)
        return None

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        """By offsets, epochs and last records (`rules/lifecycle/copies/copy_continuation.py`). Raises `BrokerError`."""
        logs = self.logs(topic)
        asked = epochs_to_ask(copy, logs)
        cuts = {p: SourceWasCut(asked[p].offset, cut) for p, cut in self.cuts(topic.name, asked).items()}
        return self._compared(topic, copy, logs, cuts)

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        """Whether it was another cluster's log that was read: Kafka's reader itself fails where offsets are gone."""
        logs = self.logs(replace(topic, partitions=tuple(partitions))) if partitions else {}
        continuations = self._compared(topic, copy, logs, {})
        return {p: how for p, how in continuations.items() if isinstance(how, SourceWentBack | SourceWasCut)}

    def _compared(
        self,
        topic: SourceTopic,
        copy: TopicState,
        logs: Mapping[int, SourceLog],
        cuts: Mapping[int, SourceWasCut],
    ) -> Mapping[int, CopyContinuation]:
        return compared(copy, logs, cuts, lambda ranges: self.signs(topic.name, ranges), self._copied)

    def stable_ends(self, topic: SourceTopic) -> StableEnds:
        """Raises `BrokerError`."""
        logs = self.logs(topic)
        retention_ms: int | None = DEFAULT_MS
        policy: str | None = None
        with suppress(BrokerError):  # it answers, so this is a right that only a first ingest and a resync need
            config = self.config(topic.name)
            retention_ms, policy = delete_retention_ms(config), config.get("cleanup.policy")
        starts, ends = {p: log.start_offset for p, log in logs.items()}, {p: log.end_offset for p, log in logs.items()}
        return StableEnds(starts, ends, retention_ms, policy)

    def progress(self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]) -> tuple[IngestedLog, ...]:
        """Raises `BrokerError`."""
        return tuple(
            IngestedLog(p, copy.log(p).log_end_offset, log.end_offset, records.get(p, 0))
            for p, log in self.logs(topic).items()
        )

    def stream(
        self, topic: str, starts: Mapping[int, SourcePosition | None], run_id: str, on_batch: OnBatch
    ) -> SourceStream:
        """Raises `ConnectorError` if the session does not know Kafka."""
        request = self._request
        plan = StreamPlan(
            source=topic,
            config=request.config,
            starts={p: start for p, start in starts.items() if isinstance(start, int)},  # all of Kafka's are
            available_now=not request.continuous,
            max_records=request.max_records or self._offsets_at_once(topic),
            interval_ms=request.interval_ms,
            checkpoint=request.checkpoint,
        )
        stream = TopicStream(plan, on_batch)
        stream.start(self._session, run_id)
        self._streams.append(stream)
        return stream

    def resync(
        self, topic: SourceTopic, starts: Mapping[int, int], ends: Mapping[int, int], keys: CopyKeys
    ) -> ResyncBatch:
        """See `spark/kafka/resync_batch.py`."""
        return ResyncBatch(self._session, topic.name, self._request.config, starts, ends, keys, self._stops)

    def _offsets_at_once(self, name: str) -> int:
        topic, size_bytes = self.topic(name), None
        with suppress(BrokerError):  # a right that an ingest does not need otherwise
            size_bytes = self.size_bytes(topic)
        offsets = sum(log.end_offset - log.start_offset for log in self.logs(topic).values())
        return offsets_at_once(offsets, size_bytes)


def settings_like(kafka: Mapping[str, str], config: Mapping[str, object]) -> Mapping[str, object]:
    """The settings of a copy of a topic that has `kafka`'s; `config` goes over them."""
    compacts = "compact" in kafka.get("cleanup.policy", "compact")
    mine: dict[str, object] = {name: kafka[name] for name in _SAME if name in kafka}
    if int(str(mine.get("max.compaction.lag.ms", 0))) == _NO_LIMIT:  # Kafka's value for never
        del mine["max.compaction.lag.ms"]
    mine |= {"cleanup.policy": "compact" if compacts else "delete", "retention.ms": -1, "null.key": "reject"}
    mine["max.message.bytes"] = 2**31 - 1  # records that Kafka has accepted are not refused
    return {**mine, **config}


def _taken_over(theirs: Mapping[str, str], mine: Mapping[str, object], config: Mapping[str, object]) -> str:
    """What of Kafka's policies the new copy has, what not and why, as text."""
    names = ("cleanup.policy", *_SAME)
    same = [f"{name}={mine[name]}" for name in names if name not in config and name in mine]
    given = [f"{name}={value}" for name, value in config.items()]
    text = f"created with Kafka's {', '.join(same)}" if same else "created"
    text += f", and with {', '.join(given)} as given" if given else ""
    left = [] if theirs.get("cleanup.policy") == mine["cleanup.policy"] else ["cleanup.policy"]
    if "delete" in theirs.get("cleanup.policy", ""):
        left += [name for name in _LIMITS if theirs.get(name, "-1") != "-1"]
    left = [f"{name}={theirs[name]}" for name in left if name in theirs and name not in config]
    if not left:
        return text
    return f"{text}; not copied: {', '.join(left)}, as a copy keeps its history unless --config sets a limit"
