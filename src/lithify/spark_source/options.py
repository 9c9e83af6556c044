"""Parses the options of the data source, which have the names of those of Spark's Kafka source.

Names are case-insensitive, as in Spark. An unknown option raises an error: a misspelled option that was
ignored would read other records than requested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lithify.errors import RefusedError
from lithify.model.cursor import AtTime, Start
from lithify.model.message import MessageId
from lithify.model.names import TopicName, checked_group, parse_topic
from lithify.model.scan import Bound, Everywhere, Listed, Matching, PerLog, ScanSettings, Subscription
from lithify.ports.store import Warehouse

Connect = Callable[[], Warehouse]
"""Opens the warehouse. Readers and writers are serialised to tasks with it; tasks call it only when they need it."""

PLACES = ("warehouse", "catalog")
READING = (
    "path",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "includeHeaders",
    "includeMessageIds",
    "failOnDataLoss",
    "compacted",
    "columns",
    "group",
    "coordinationUrl",
)
WRITING = ("path", "topic", "queryId", "batchId")
_OF_SPARK = ("checkpointLocation", "queryName")
"""Options for Spark itself, which passes them to the source too."""

Options = Mapping[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read. `start` and `end` are None if not given."""

    subscription: Subscription
    start: Bound | None
    end: Bound | None
    settings: ScanSettings
    offsets_per_trigger: int | None
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
    return ReadOptions(
        subscription=_subscription(given),
        start=_bound(given, "starting"),
        end=_bound(given, "ending"),
        settings=ScanSettings(
            compacted=_flag(given, "compacted", default=False),
            fail_on_data_loss=_flag(given, "failOnDataLoss", default=True),
            min_tasks=_positive(given, "minPartitions"),
        ),
        offsets_per_trigger=_positive(given, "maxOffsetsPerTrigger"),
        include_headers=_flag(given, "includeHeaders", default=False),
        include_message_ids=_flag(given, "includeMessageIds", default=False),
        columns=_columns(given),
        group=None if "group" not in given else checked_group(given["group"]),
        coordination_url=given.get("coordinationUrl"),
    )


def write_options(options: Options) -> WriteOptions:
    """Raises `RefusedError` or `InvalidNameError`."""
    given = _known(options, (*PLACES, *WRITING))
    query, batch = given.get("queryId"), _number(given, "batchId")
    if (query is None) != (batch is None):
        raise RefusedError("queryId and batchId belong together: give both or none")
    if "path" in given and "topic" in given:
        raise RefusedError(f"the topic is named twice, {given['path']} and {given['topic']}")
    topic = given.get("topic", given.get("path"))
    return WriteOptions(
        topic=None if topic is None else _topic(topic),
        batch=None if query is None or batch is None else (query, batch),
    )


def place(options: Options) -> tuple[str | None, str | None]:
    """The given warehouse and catalog, at most one of which is not None. Raises `RefusedError` for both."""
    named = {name: _find(options, name) for name in PLACES}
    if all(named.values()):
        raise RefusedError("warehouse and catalog are given: give one of them")
    return named["warehouse"], named["catalog"]


def _find(options: Options, name: str) -> str | None:
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


def _known(options: Options, names: tuple[str, ...]) -> dict[str, str]:
    """The options by their canonical names. Raises `RefusedError` for one that is not in `names`."""
    spelled = {name.lower(): name for name in names}
    skipped = {name.lower() for name in _OF_SPARK}
    given = {}
    for key, value in options.items():
        if key.lower() in skipped:
            continue
        if key.lower() not in spelled:
            kafka = key.lower().startswith("kafka.")
            hint = "leave it out: records come from the warehouse" if kafka else f"known: {', '.join(names)}"
            raise RefusedError(f"unknown option {key!r}", hint=hint)
        given[spelled[key.lower()]] = value
    return given


def _subscription(given: Mapping[str, str]) -> Subscription:
    if len(given.keys() & {"path", "subscribe", "subscribePattern"}) != 1:
        raise RefusedError(
            "give subscribe (topics, by comma), subscribePattern, or the topic in load(), one of the three"
        )
    listed, pattern = given.get("subscribe", given.get("path")), given.get("subscribePattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise RefusedError(f"subscribePattern={pattern}: not a regular expression: {error}") from None
        return Matching(pattern)
    assert listed is not None
    return Listed(tuple(_topic(name.strip()) for name in listed.split(",")))


def _topic(text: str) -> TopicName:
    return parse_topic(text).whole("read or written")


def _bound(given: Mapping[str, str], which: str) -> Bound | None:
    """A bound, in Kafka's order of precedence: one time for all logs, a time per log, offsets."""
    time, times, offsets = f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"
    if time in given:
        return Everywhere(AtTime(_required(_number(given, time))))
    if times in given:
        return _per_log(times, given[times], lambda time: AtTime(_whole(time)))
    match given.get(offsets, "").lower():
        case "":
            return None
        case "earliest" | "latest" as end:
            return Everywhere(end)
        case _:
            return _per_log(offsets, given[offsets], _place_in_log)


def _place_in_log(place: object) -> Start:
    """An offset of Kafka's JSON, where -2 and -1 are the ends of a log, or a message id as text."""
    if isinstance(place, str):
        return MessageId.parsed(place)
    match _whole(place):
        case -2:
            return "earliest"
        case -1:
            return "latest"
        case offset:
            return offset


def _per_log(name: str, text: str, position: Callable[[object], Start]) -> PerLog:
    try:
        given: Any = json.loads(text)
        positions = {
            str(_topic(topic)): {int(partition): position(place) for partition, place in logs.items()}
            for topic, logs in given.items()
        }
    except (ValueError, TypeError, AttributeError):
        raise RefusedError(
            f"{name}={text}: neither earliest nor latest, nor JSON",
            hint='write {"topic":{"0":23,"1":-2}}; -2 is the earliest, -1 the latest, "1042:17" a message id',
        ) from None
    return PerLog(positions)


def _whole(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < -2:
        raise ValueError(number)
    return number


def _columns(given: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    return tuple(name.strip() for name in given["columns"].split(","))


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise RefusedError(f"{name}={text}: give true or false")
    return text.lower() == "true"


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,18}", text.strip()):
        raise RefusedError(f"{name}={text}: give a whole number that is not below 0")
    return int(text)


def _positive(given: Mapping[str, str], name: str) -> int | None:
    number = _number(given, name)
    if number == 0:
        raise RefusedError(f"{name}=0: give a number above 0")
    return number


def _required(number: T | None) -> T:
    assert number is not None  # the option was given
    return number
