"""Fills a table from the lake, and then live from Kafka (C1, C9, C49)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from lithify.hydration.hydrating import HydrateReport, Hydration, checked_where
from lithify.hydration.lines_file import Lines
from lithify.kafka.consumer.live_topic import KafkaTopic
from lithify.kafka.pulse import Pulse, Retries
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.first_look import ASKED_S, asking, look_at
from lithify.ports.source import StopAsked
from lithify.ports.topic import OpenTopic
from lithify.service.documents import source_of
from lithify.service.snapshot.consumer_narration import KafkaNote, TellNote
from lithify.service.snapshot.lake_and_live import LakeAndLive
from lithify.service.snapshot.position import PositionText, StartAt, StoredPosition


def hydrate(  # noqa: PLR0913 - the flags of the verb, by name
    topic: OpenTopic,
    conf: Mapping[str, Any],
    to: str,
    *,
    kafka_topic: str | None = None,
    continuous: bool = False,
    timeout_s: float = 30.0,
    lines: Lines | None = None,
    tell: Callable[[int], None] = lambda _records: None,
    notes: TellNote = lambda _note: None,
    stops: Callable[[], bool] = lambda: False,
) -> HydrateReport:
    """Fills the table of `topic` in a SQLite or DuckDB file with the latest record of every live key.

    It reads the lake, then Kafka up to its end, with `continuous` until `stops()`, waiting where the cluster does not
    answer. Rows and position are stored together: the next call continues there, after a crash too. `to` is
    `sqlite:PATH` or `duckdb:PATH`, or a path that ends like one. Any other is a file of JSON lines, which `lines`
    makes of Arrow tables, and which is replaced at the end as a whole. `kafka_topic` is by default what the topic
    is a copy of. `tell` gets the number of records read, and `notes` all other notes; notes about outages come from
    a thread of their own.

    Raises `RefusedError` for a target that it cannot use, `LogTruncatedError` if the table cannot be continued,
    and what `SnapshotConsumer` raises.
    """
    where, warehouse = checked_where(to, lines, continuous=continuous), topic.warehouse
    name = kafka_topic or source_name(topic)
    cluster, clock = Cluster(conf, timeout_s, stops), warehouse.clock
    positions = PositionText(topic.topic_name.stored, name)
    waits_ms = None if continuous else round(timeout_s * 1000)
    run = Hydration(warehouse, topic.topic_name, where, positions, waits_ms, stops, tell, notes)

    def consumer_at(start: StoredPosition) -> LakeAndLive:
        live = KafkaTopic(cluster, name, warehouse, topic.topic_name)
        return LakeAndLive(warehouse, topic.topic_name, live, None, StartAt(start))

    with suppress(StopAsked):
        notes(KafkaNote("asking", asking(cluster)))
        look_at(Cluster(conf, min(ASKED_S, timeout_s), stops), name)
        with Pulse(conf, name, clock, notes) as pulse:
            run.run(consumer_at, Retries(pulse, continuous, clock, stops))
    return run.report()


def source_name(topic: OpenTopic) -> str:
    """The topic of Kafka that this one is a copy of, else the one of its own name."""
    copied = source_of(topic.warehouse.store, topic.state())
    return topic.topic_name.topic if copied is None else copied.name
