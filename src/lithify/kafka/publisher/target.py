"""The Kafka topic that a topic of the lake is published into: created, or checked before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from lithify.errors import RefusedError, UnknownSourceError
from lithify.kafka.consumer.live_tail import LiveTail
from lithify.kafka_client.client import Cluster, client
from lithify.model.settings.table import NO_LIMIT
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.settings.units import parse_duration_ms, parse_size_bytes, plural
from lithify.ports.clock import Clock
from lithify.service.snapshot.live import Reached

OVERHEAD_BYTES = 4096
"""An upper bound of what a batch adds to the bytes of a record."""
FOREVER_MS = 2**63 - 1
NOT_TAKEN = (
    "message.timestamp.",  # records keep their timestamps, whatever these are
    "message.format.version",  # gone since Kafka 4
    "message.downconversion.enable",
    "leader.replication.throttled.",  # of brokers of the other cluster
    "follower.replication.throttled.",
)
"""How settings of a copied topic begin that a target does not get."""
ANY_SIZE = 2**31 - 1
"""The `max.message.bytes` of copies: what Kafka has accepted is not refused."""


def largest_batch(settings: TopicSettings) -> int:
    """Bytes of a batch that any record of the topic fits in."""
    return max(1_048_588, min(settings.max_message_bytes + OVERHEAD_BYTES, 1_000_000_000))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The target as its user names it: with settings, and a replication factor, of which None is the cluster's own."""

    to: str
    config: Mapping[str, str] = field(default_factory=dict)
    replication_factor: int | None = None

    @classmethod
    def given(cls, to: str, config: Mapping[str, str], replication_factor: int | None) -> Self:
        """With units in durations and sizes, as settings of topics here have them: Kafka takes numbers alone."""
        return cls(to, {name: _number(name, value) for name, value in config.items()}, replication_factor)

    def check(self, config: Mapping[str, str]) -> None:
        """Raises `RefusedError` if the target is there and has other settings."""
        wanted = {name: value for name, value in self.config.items() if value}  # without one, a new target has no own
        other = [f"{name}={config.get(name)}" for name, value in wanted.items() if config.get(name) != value]
        if other:
            raise RefusedError(
                f"Kafka's {self.to} exists already, with {', '.join(other)}",
                hint="leave these settings out, or change the topic with kafka-configs",
            )


@dataclass(frozen=True, slots=True)
class Source:
    """The topic of the lake: its settings, and those that were set in Kafka on the topic that it is a copy of."""

    settings: TopicSettings
    theirs: Mapping[str, str] = field(default_factory=dict)

    @property
    def taken(self) -> dict[str, str]:
        """The settings among `theirs` that a target can have too."""
        return {name: value for name, value in self.theirs.items() if not name.startswith(NOT_TAKEN)}


@dataclass(frozen=True, slots=True)
class Target:
    """`compacts`: it is compacted and refuses records without a key. `config`: what it was created with."""

    created: bool
    compacts: bool
    config: Mapping[str, str] = field(default_factory=dict)


def find_or_make(cluster: Cluster, wanted: Wanted, partitions: int, source: Source) -> Target:
    """The target, created if it is missing. Raises `RefusedError` for one that would not keep the records."""
    to = wanted.to
    try:
        there = partitions_of(cluster, to)
    except UnknownSourceError:
        config = new_config(source, wanted.config)
        _check_keeps(wanted, config, source)
        make(cluster, wanted, partitions, config)
        return Target(created=True, compacts="compact" in config["cleanup.policy"], config=config)
    if there < partitions:
        raise RefusedError(
            f"Kafka's {to} has {plural(there, 'partition')}, fewer than the topic's {partitions}",
            hint="add partitions to it, as records keep their partitions, or use a topic that does not exist yet",
        )
    config = _config(cluster, to)
    wanted.check(config)
    _check_keeps(wanted, config, source)
    return Target(created=False, compacts="compact" in config["cleanup.policy"].split(","))


def new_config(source: Source, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a created target: the topic's, then the copied Kafka topic's, then `given`; the last one wins.

    A copy takes records of any size (`max.message.bytes` of 2 GB), which is not a setting for brokers: theirs counts
    then. What is given without a value is left to the cluster.
    """
    settings, taken = source.settings, source.taken
    config = {
        "cleanup.policy": settings.cleanup_policy,
        "delete.retention.ms": str(settings.delete_retention_ms),
        "min.cleanable.dirty.ratio": str(settings.min_cleanable_dirty_ratio),
        "min.compaction.lag.ms": str(settings.min_compaction_lag_ms),
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(FOREVER_MS),  # the lake may have later timestamps
    }
    if settings.max_compaction_lag_ms != NO_LIMIT:
        config["max.compaction.lag.ms"] = str(settings.max_compaction_lag_ms)
    if settings.max_message_bytes < ANY_SIZE:
        config["max.message.bytes"] = str(largest_batch(settings))
    if settings.deletes:
        config |= {"retention.ms": str(settings.retention_ms), "retention.bytes": str(settings.retention_bytes)}
    elif "delete" in (taken | dict(given)).get("cleanup.policy", ""):
        config |= {"retention.ms": "-1", "retention.bytes": "-1"}
    return {name: value for name, value in {**config, **taken, **given}.items() if value or name not in taken}


def _check_keeps(wanted: Wanted, config: Mapping[str, str], source: Source) -> None:
    """Raises `RefusedError` for settings with which a topic would not keep the records.

    Unless they are given, or Kafka's topic had the same.
    """
    to = wanted.to
    if (kind := config["message.timestamp.type"]) != "CreateTime":
        raise RefusedError(
            f"Kafka's {to} has message.timestamp.type={kind}, which would not keep the timestamps",
            hint="set it to CreateTime",
        )
    policy, taken = config["cleanup.policy"].split(","), source.taken
    names = [name for name in ("retention.ms", "retention.bytes") if name not in wanted.config]
    limits = [f"{name}={config[name]}" for name in names if config.get(name, "-1") not in ("-1", taken.get(name))]
    if "delete" in policy and limits and not source.settings.deletes:
        raise RefusedError(
            f"Kafka's {to} deletes old records ({', '.join(limits)}), but the topic in the lake keeps them",
            hint="set its cleanup.policy to compact, or these settings to -1",
        )


def check_only_ours(cluster: Cluster, to: str, ends: Mapping[int, int], clock: Clock) -> None:
    """Raises `RefusedError` if the target has records at or after `ends`, where earlier runs ended, by partition."""
    with cluster.asking() as asking:
        starts = {p: Reached(max(end, cluster.ends(asking, to, p)[0])) for p, end in ends.items()}
    tail = LiveTail(cluster, to, starts, clock)
    try:
        while not tail.is_at_end(cluster.timeout_s):
            for record in tail.take(0):
                raise RefusedError(
                    f"Kafka's {to}-{record.partition} has a record of another program at offset {record.offset}",
                    hint="publish to a topic that no other program writes to",
                )
    finally:
        tail.close()


def _number(name: str, text: str) -> str:
    """What is neither a duration nor a size remains as it is, for Kafka to judge."""
    parse = {"ms": parse_duration_ms, "bytes": parse_size_bytes}.get(name.rpartition(".")[2])
    with suppress(ValueError):
        return text if parse is None else str(parse(text))
    return text


def partitions_of(cluster: Cluster, to: str) -> int:
    with cluster.asking() as asking:
        return cluster.partitions(asking, to)


def make(cluster: Cluster, wanted: Wanted, partitions: int, config: Mapping[str, str]) -> None:
    """Creates a topic. Raises `RefusedError` for a setting that the cluster refuses."""
    to, replicas = wanted.to, -1 if wanted.replication_factor is None else wanted.replication_factor
    new = client().admin.NewTopic(to, partitions, replicas, config=dict(config))
    admin = cluster.admin()
    with cluster.explained(to):
        try:
            cluster.answer(admin.create_topics([new], operation_timeout=cluster.timeout_s)[to])
        except client().KafkaException as error:
            k = client().KafkaError
            hints = {
                k.INVALID_CONFIG: "give another value with --config NAME=VALUE, or omit the copied value with NAME=",
                k.INVALID_REPLICATION_FACTOR: "give a --replication-factor of at most the number of brokers",
            }
            hint = hints.get(error.args[0].code())
            if hint is None:
                raise
            raise RefusedError(f"Kafka refused to create {to}: {error.args[0].str()}", hint=hint) from error


def _config(cluster: Cluster, to: str) -> dict[str, str]:
    admin = client().admin
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, to)
    asked = cluster.admin()  # a reference, so that it lives until the answer
    with cluster.explained(to):
        entries = cluster.answer(asked.describe_configs([resource], request_timeout=cluster.timeout_s)[resource])
        return {name: str(entry.value) for name, entry in entries.items()}
