"""Parses the options of the data source, which have the names that Spark's Kafka source uses.

Names are case-insensitive, as in Spark. An unknown option raises an error: a misspelled option that was
ignored would read other records than requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lithify.errors import RefusedError
from lithify.model.names import TopicName, checked_group, nearest
from lithify.model.scan import AsOf, Bound, Everywhere, PerLog, ScanSettings, Subscription
from lithify.model.topic.append_note import CHAIN_ID
from lithify.ports.store import Warehouse
from lithify.spark_source.given import Given, duration_ms, find, flag, number, positive, topic_of
from lithify.spark_source.ranges import ENDS, POINTS, STARTS, SUBSCRIPTIONS, assigned, bound, point, subscription

Connect = Callable[[], Warehouse]
"""Opens the warehouse. Readers and writers are serialised to tasks with it; tasks call it only when they need it."""

PLACES = ("warehouse", "catalog")
READING = (
    *SUBSCRIPTIONS,
    *STARTS,
    "startingOffsetsByTimestampStrategy",
    *ENDS,
    *POINTS,
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "includeMessageIds",
    "failOnDataLoss",
    "compacted",
    "columns",
    "group",
    "coordinationUrl",
)
WRITING = ("path", "topic", "queryId", "batchId")
_OF_SPARK = ("checkpointlocation", "queryname")
"""Options for Spark itself, which passes them to the source too."""
_OF_TABLES = "provider"
"""Among what `CREATE TABLE … USING lithify` hands over of every table beside its options."""
_OF_KAFKAS_CLIENTS = ("groupidprefix", "kafkaconsumer.", "fetchoffset.")
"""Beginnings of options of Spark's Kafka source that say how its clients ask brokers: here there are none."""
TRIGGER_DELAY_MS = 15 * 60_000
"""Default of Spark's Kafka source for `maxTriggerDelay`."""

Options = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Triggers:
    """How many offsets a batch of a stream spans: at most, and at least unless so long has passed since the last."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = TRIGGER_DELAY_MS


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read. `start` and `end` are None if not given, `start_by` and `end_by` the options that do."""

    subscription: Subscription
    start: Bound | None
    start_by: str | None
    end: Bound | None
    end_by: str | None
    as_of: AsOf | None
    settings: ScanSettings
    triggers: Triggers
    include_headers: bool
    include_message_ids: bool
    columns: tuple[str, ...] | None
    group: str | None
    """The consumer group to which a stream reports its progress, in the database at `coordination_url`."""
    coordination_url: str | None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write. `topic` None: the column `topic` decides. `batch` is (query, batch id)."""

    topic: TopicName | None
    batch: tuple[str, int] | None


def read_options(options: Options) -> ReadOptions:
    """Raises `RefusedError`, or `InvalidNameError` for an invalid topic name."""
    given = _known(options, (*PLACES, *READING))
    start_by, start = bound(given, STARTS)
    end_by, end = bound(given, ENDS)
    return ReadOptions(
        subscription=subscription(given),
        start=start,
        start_by=start_by,
        end=end,
        end_by=end_by,
        as_of=point(given),
        settings=ScanSettings(
            compacted=flag(given, "compacted", default=False),
            fail_on_data_loss=flag(given, "failOnDataLoss", default=True),
            latest_without_match=_strategy(given),
            min_tasks=positive(given, "minPartitions"),
            max_task_offsets=positive(given, "maxRecordsPerPartition"),
            assigned=assigned(given),
        ),
        triggers=_triggers(given),
        include_headers=flag(given, "includeHeaders", default=False),
        include_message_ids=flag(given, "includeMessageIds", default=False),
        columns=_columns(given),
        group=None if "group" not in given else checked_group(given["group"]),
        coordination_url=given.get("coordinationUrl"),
    )


def check_batch(options: ReadOptions) -> None:
    """Raises `RefusedError` for options that a batch query cannot have, as Spark's Kafka source does."""
    if options.start_by == "startingOffsets":
        _check_reads_something("startingOffsets", options.start, "latest", -1)
    if options.end_by == "endingOffsets":
        _check_reads_something("endingOffsets", options.end, "earliest", -2)
    if options.group is not None:
        raise RefusedError("group: a batch query does not report progress", hint="remove it, or use a streaming query")


def check_stream(options: ReadOptions) -> None:
    """Raises `RefusedError` for options that a stream cannot have."""
    if options.end is not None:
        raise RefusedError(f"{options.end_by}: a stream has no end", hint="remove it")
    if options.as_of is not None:
        raise RefusedError(f"{', '.join(POINTS)}: a stream does not read past states", hint="remove it")


def _check_reads_something(name: str, given: Bound | None, refused: str, number_of_it: int) -> None:
    match given:
        case Everywhere(position) if position == refused:
            raise RefusedError(
                f"{name}={refused}: nothing would be read",
                hint="remove it: a batch query reads the records that exist now",
            )
        case PerLog(positions):
            for topic, logs in positions.items():
                for partition, position in logs.items():
                    if position == refused:
                        raise RefusedError(
                            f"{name}: {number_of_it} is the {refused}, which would read nothing of partition "
                            f"{partition} of {topic}",
                            hint="select partitions with assign",
                        )


def write_options(options: Options) -> WriteOptions:
    """Raises `RefusedError` or `InvalidNameError`."""
    given = _known(options, (*PLACES, *WRITING))
    query, batch = given.get("queryId"), number(given, "batchId")
    if (query is None) != (batch is None):
        raise RefusedError("give both queryId and batchId, or neither")
    if query == CHAIN_ID:
        raise RefusedError(f"queryId={query} is reserved for appends with idempotency keys", hint="choose another one")
    if "path" in given and "topic" in given:
        raise RefusedError(f"two topics are given, {given['path']} and {given['topic']}")
    topic = given.get("topic", given.get("path"))
    return WriteOptions(
        topic=None if topic is None else topic_of(topic),
        batch=None if query is None or batch is None else (query, batch),
    )


def place(options: Options) -> tuple[str | None, str | None]:
    """The given warehouse and catalog, at most one of which is not None. Raises `RefusedError` for both."""
    named = {name: find(options, name) for name in PLACES}
    if all(named.values()):
        raise RefusedError("give warehouse or catalog, not both")
    return named["warehouse"], named["catalog"]


def _known(options: Options, names: tuple[str, ...]) -> dict[str, str]:
    """The options by their canonical names. Raises `RefusedError` for one that is not in `names`."""
    spelled = {name.lower(): name for name in names}
    given = {}
    if find(options, _OF_TABLES) is not None:
        hint = "use CREATE TEMPORARY VIEW … USING lithify OPTIONS (…)"
        raise RefusedError("a table of Spark's catalog cannot be of this format", hint=hint)
    for key, value in options.items():
        if key.lower() in _OF_SPARK or key.lower().startswith(_OF_KAFKAS_CLIENTS):
            continue
        if key.lower() not in spelled:
            known = nearest(key, names, f"use one of: {', '.join(names)}")  # Spark hands over `key` in lower case
            hint = "remove it: records come from the warehouse" if key.lower().startswith("kafka.") else known
            raise RefusedError(f"unknown option {key!r}", hint=hint)
        given[spelled[key.lower()]] = value
    return given


def _columns(given: Given) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    return tuple(name.strip() for name in given["columns"].split(","))


def _triggers(given: Given) -> Triggers:
    most, least = positive(given, "maxOffsetsPerTrigger"), positive(given, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise RefusedError(f"minOffsetsPerTrigger={least} is greater than maxOffsetsPerTrigger={most}")
    return Triggers(most, least, duration_ms(given, "maxTriggerDelay", default=TRIGGER_DELAY_MS))


def _strategy(given: Given) -> bool:
    """Whether a log without a record at or after the time to start at is read from its end on."""
    text = given.get("startingOffsetsByTimestampStrategy", "error")
    if text.lower() not in ("error", "latest"):
        raise RefusedError(f"startingOffsetsByTimestampStrategy={text}: give error or latest")
    return text.lower() == "latest"
