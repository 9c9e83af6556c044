"""The metrics that there are: names, kinds, labels, and what they mean. The registry and the docs are made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "lithify_"


class Group(StrEnum):
    """Metrics that a process has together, by what it does."""

    PROCESS = "Every process"
    CLEANER = "`cleaner run`"
    KAFKA_NAMES = "`cleaner run`, by Kafka's names"
    INGEST = "`kafka ingest` and `pulsar ingest`"
    PUBLISH = "`kafka publish`"
    HYDRATE = "`hydrate` and `kafka hydrate`"
    REPLICA = "`replica run`"


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. Its name ends with its unit; the name of a counter ends with `_total`."""

    name: str
    kind: Kind
    group: Group
    help: str
    labels: tuple[str, ...] = ()
    by_topic: bool = False
    """Whether a counter also gets the label `topic`, where topics are to be labelled."""
    joined: Callable[[float, float], float] = float.__add__
    """What becomes of two samples of a gauge with the same labels, as two jobs of a process have them."""


def _counter(group: Group, name: str, text: str, labels: tuple[str, ...] = (), *, by_topic: bool = False) -> Metric:
    return Metric(f"{PREFIX}{name}_total", Kind.COUNTER, group, text, labels, by_topic)


def _sum(group: Group, name: str, text: str, *labels: str) -> Metric:
    return Metric(PREFIX + name, Kind.GAUGE, group, text, labels)


def _largest(group: Group, name: str, text: str, *labels: str) -> Metric:
    return Metric(PREFIX + name, Kind.GAUGE, group, text, labels, joined=max)


_ROUNDS = (
    _counter(Group.CLEANER, "compaction_rounds", "Rounds that changed a topic", by_topic=True),
    _counter(Group.CLEANER, "compaction_idle_rounds", "Rounds that found nothing to change"),
    _counter(Group.CLEANER, "compaction_logs", "Logs that rounds have compacted", by_topic=True),
    _counter(Group.CLEANER, "compaction_input_records", "Records before rounds", by_topic=True),
    _counter(Group.CLEANER, "compaction_output_records", "Records after rounds", by_topic=True),
    _counter(
        Group.CLEANER,
        "compaction_removed_records",
        "Records that rounds removed: `cause` is superseded, expired_tombstone, no_key, past_retention or below_start",
        ("cause",),
        by_topic=True,
    ),
    _counter(Group.CLEANER, "compaction_read_bytes", "Compressed bytes that rounds read", by_topic=True),
    _counter(Group.CLEANER, "compaction_written_bytes", "Compressed bytes that rounds wrote", by_topic=True),
    Metric(
        f"{PREFIX}compaction_duration_seconds",
        Kind.HISTOGRAM,
        Group.CLEANER,
        "How long the run of a round took; small topics share a run",
    ),
    _counter(Group.CLEANER, "compaction_failed_logs", "Failures of rounds, once for each log", by_topic=True),
    _counter(
        Group.CLEANER, "compaction_abandoned_logs", "Logs whose round ended without a commit: stopped, lease lost"
    ),
    _counter(Group.CLEANER, "compaction_conflicting_logs", "Logs that other commits changed during a round, too often"),
    _largest(Group.CLEANER, "last_round_age_seconds", "Since the last round of this process, or since its start"),
    _sum(Group.CLEANER, "running_topics", "Topics whose rounds are running"),
)
_CHORES = (
    _counter(Group.CLEANER, "retention_removed_records", "Records past retention, removed without a round"),
    _counter(Group.CLEANER, "retention_removed_bytes", "Compressed bytes of these records"),
    _counter(Group.CLEANER, "expired_versions", "Retained versions that expired by their age"),
    _counter(Group.CLEANER, "swept_files", "Deleted files that no version named"),
    _counter(Group.CLEANER, "swept_bytes", "Bytes of these files"),
)
_CATALOG = (
    _largest(
        Group.CLEANER, "last_look_age_seconds", "Since the last completed check of all topics, or since the start"
    ),
    _largest(Group.CLEANER, "look_interval_seconds", "The `--interval` between checks"),
    _largest(Group.CLEANER, "topics", "Topics of the catalog, as of the last check, like all that follow"),
    _largest(Group.CLEANER, "unreadable_topics", "Topics that could not be read"),
    _largest(Group.CLEANER, "due_topics", "Topics with a log that is due for a round or retention"),
    _largest(Group.CLEANER, "due_logs", "Logs that are due"),
    _largest(Group.CLEANER, "overdue_topics", "Topics with a log past `max.compaction.lag.ms`"),
    _largest(Group.CLEANER, "max_overdue_seconds", "How far the most overdue log is past `max.compaction.lag.ms`"),
    _largest(Group.CLEANER, "max_compaction_lag_seconds", "Age, by its timestamp, of the oldest dirty record"),
    _largest(Group.CLEANER, "max_dirty_ratio", "Dirty ratio of the dirtiest log, 0 to 1"),
    _largest(Group.CLEANER, "dirty_bytes", "Compressed dirty bytes of all topics"),
    _largest(Group.CLEANER, "quarantined_logs", "Logs that are quarantined"),
    _sum(Group.CLEANER, "held_leases", "Leases that this cleaner holds: of logs, of its id, of the upkeep"),
    _largest(Group.CLEANER, "cleaners", "Running cleaners that share its leases, this one included"),
    _largest(Group.CLEANER, "topic_dirty_ratio", "Dirty ratio of the dirtiest log of a topic", "topic"),
    _largest(Group.CLEANER, "topic_dirty_bytes", "Compressed dirty bytes of a topic", "topic"),
    _largest(Group.CLEANER, "topic_overdue_seconds", "How far a topic is past `max.compaction.lag.ms`", "topic"),
    _largest(Group.CLEANER, "topic_due_logs", "Logs of a topic that are due", "topic"),
    _largest(Group.CLEANER, "topic_quarantined_logs", "Logs of a topic that are quarantined", "topic"),
)
_KAFKA_NAMES = (
    _largest(Group.KAFKA_NAMES, "log_cleaner_max_dirty_percent", "`max-dirty-percent`: max_dirty_ratio in percent"),
    _largest(
        Group.KAFKA_NAMES,
        "log_cleaner_uncleanable_partitions_count",
        "`uncleanable-partitions-count`: logs that are quarantined",
    ),
    _largest(Group.KAFKA_NAMES, "log_cleaner_uncleanable_bytes", "`uncleanable-bytes`: dirty bytes of these logs"),
    _largest(
        Group.KAFKA_NAMES,
        "log_cleaner_time_since_last_run_ms",
        "`time-since-last-run-ms`: since the last check of all topics",
    ),
    _largest(
        Group.KAFKA_NAMES,
        "log_cleaner_max_compaction_delay_secs",
        "`max-compaction-delay-secs`: how far the most overdue log is past `max.compaction.lag.ms`",
    ),
    _largest(Group.KAFKA_NAMES, "log_cleaner_max_clean_time_secs", "`max-clean-time-secs`: time of the last round"),
    _largest(
        Group.KAFKA_NAMES,
        "log_cleaner_cleaner_recopy_percent",
        "`cleaner-recopy-percent`: bytes written by the last round, in percent of those read",
    ),
)


def _copies(group: Group, verb: str, done: str) -> tuple[Metric, ...]:
    """What all have that bring records of a topic somewhere else."""
    return (
        _counter(group, f"{verb}_records", f"Records {done}", by_topic=True),
        _sum(group, f"{verb}_lag", _LAG),
        _largest(
            group, f"{verb}_lag_age_seconds", "Since a lag was last known, or since the start: grows without records"
        ),
        _largest(group, f"{verb}_outage", "1 from an event `outage` to `recovered`: a cluster or the catalog is away"),
        _largest(group, f"topic_{verb}_lag", f"`{verb}_lag` of a topic", "topic"),
    )


_LAG = "How far all topics are behind: offsets, or entries of Pulsar. Missing until it is known"

METRICS: tuple[Metric, ...] = (
    _sum(Group.PROCESS, "build_info", "1, with the version of Lithify", "version"),
    _counter(Group.PROCESS, "errors", "Errors of events, by their code", ("error_code",)),
    _sum(Group.PROCESS, "unlabelled_topics", "Topics beyond the number of those with labels"),
    *_ROUNDS,
    *_CHORES,
    *_CATALOG,
    *_KAFKA_NAMES,
    _counter(Group.INGEST, "ingest_batches", "Batches committed", by_topic=True),
    *_copies(Group.INGEST, "ingest", "copied into the lake"),
    _sum(Group.INGEST, "ingest_topics", "Topics that are copied"),
    _sum(Group.INGEST, "ingest_failed_topics", "Topics whose copy has ended with an error, while others continue"),
    *_copies(Group.PUBLISH, "publish", "published into Kafka"),
    *_copies(Group.HYDRATE, "hydrate", "read into the table"),
    _counter(Group.REPLICA, "replica_copies", "Copies of a topic that have changed its replica", by_topic=True),
    _counter(Group.REPLICA, "replica_copied_files", "Files copied"),
    _counter(Group.REPLICA, "replica_copied_bytes", "Bytes copied"),
    _counter(Group.REPLICA, "replica_failures", "Copies of a topic that failed", by_topic=True),
    _largest(
        Group.REPLICA, "replica_last_look_age_seconds", "Since the last check of the replicas, or since the start"
    ),
    _sum(Group.REPLICA, "replica_topics", "Topics of the replicas that are not paused"),
    _sum(Group.REPLICA, "replica_failed_topics", "Topics whose last copy failed"),
    _sum(Group.REPLICA, "replica_behind_topics", "Topics whose replica lacks something"),
    _largest(
        Group.REPLICA, "replica_max_lag_seconds", "How long the replica that is furthest behind has lacked something"
    ),
    _largest(
        Group.REPLICA, "topic_replica_lag_seconds", "How long the replicas of a topic have lacked something", "topic"
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}

DURATION_BUCKETS_S = (1, 5, 15, 60, 300, 900, 3600, 14_400)
