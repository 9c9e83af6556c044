"""Parses which logs a read reads, and from where to where: by offsets, by times, or as they were at a point.

Offsets and times are Kafka's JSON: -2 is the earliest and -1 the latest record of a log, of times as of offsets. A
time as of which is read needs a time zone: this process does not know the session's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from lithify.errors import RefusedError
from lithify.model.cursor import AtTime, Start
from lithify.model.message import MessageId
from lithify.model.scan import AsOf, AsOfPoint, AsOfVersion, Bound, Everywhere, Listed, Matching, PerLog, Subscription
from lithify.model.settings.units import parse_time_ms
from lithify.spark_source.given import Given, number, topic_of

SUBSCRIPTIONS = ("path", "subscribe", "subscribePattern", "assign")
STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
"""In Kafka's order of precedence: one time for all logs, a time per log, offsets."""
POINTS = ("versionAsOf", "timestampAsOf", "at")

T = TypeVar("T")
Assigned = dict[str, frozenset[int]]


def subscription(given: Given) -> Subscription:
    """The topics to read."""
    if len(given.keys() & set(SUBSCRIPTIONS)) != 1:
        raise RefusedError(
            "give one of subscribe (topics, separated by commas), subscribePattern, assign, or the topic in load()"
        )
    if "assign" in given:
        return Listed(tuple(topic_of(topic) for topic in assigned(given) or ()))
    listed, pattern = given.get("subscribe", given.get("path")), given.get("subscribePattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise RefusedError(f"subscribePattern={pattern} is not a regular expression: {error}") from None
        return Matching(pattern)
    assert listed is not None
    return Listed(tuple(topic_of(name.strip()) for name in listed.split(",")))


def assigned(given: Given) -> Assigned | None:
    """By topic the partitions that `assign` names; None without it."""
    if "assign" not in given:
        return None
    try:
        partitions = _by_topic("assign", given["assign"], lambda numbers: frozenset(map(_offset, numbers)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        partitions = {}
    if not partitions or not all(partitions.values()):
        raise RefusedError(f"assign={given['assign']} does not give partitions by topic", hint='write {"topic":[0,1]}')
    return partitions


def bound(given: Given, names: tuple[str, str, str]) -> tuple[str | None, Bound | None]:
    """Which of the options counts, and the bound that it gives; None and None without any."""
    time, times, offsets = names
    if time in given:
        return time, Everywhere(_time(_epoch_ms(given, time)))
    if times in given:
        return times, _per_log(times, given[times], lambda place: _time(_whole(place)))
    match given.get(offsets, "").strip().lower():
        case "":
            return None, None
        case "earliest" | "latest" as end:
            return offsets, Everywhere(end)
        case _:
            return offsets, _per_log(offsets, given[offsets], _place_in_log)


def point(given: Given) -> AsOf | None:
    """As of what is read. Raises `RefusedError` too where another option says how far, or from where, is read."""
    named = [name for name in POINTS if name in given]
    if not named:
        return None
    beside = [name for name in (*named[1:], *STARTS, *ENDS) if name in given]
    if beside:
        raise RefusedError(f"{named[0]} and {beside[0]} cannot be combined", hint="remove one of them")
    match named[0]:
        case "versionAsOf":
            version = number(given, "versionAsOf")
            assert version is not None
            return AsOfVersion(version)
        case "timestampAsOf":
            text = given["timestampAsOf"].strip()
            return AsOfPoint(AtTime(int(text)) if re.fullmatch(r"\d{1,18}", text) else _moment("timestampAsOf", text))
        case _:
            return AsOfPoint(_point(given["at"].strip()))


def _point(text: str) -> int | AtTime | dict[str, dict[int, int]]:
    if text.startswith("{"):
        per_log = _per_log("at", text, _offset)
        return {topic: {p: _offset(place) for p, place in logs.items()} for topic, logs in per_log.positions.items()}
    return int(text) if re.fullmatch(r"\d{1,18}", text) else _moment("at", text)


def _moment(name: str, text: str) -> AtTime:
    try:
        epoch_ms = parse_time_ms(text)
        zoned = text.startswith("@") or datetime.fromisoformat(text).tzinfo is not None
    except ValueError as error:
        raise RefusedError(f"{name}={text}: {error}") from None
    if not zoned:
        raise RefusedError(f"{name}={text}: the time has no time zone", hint="add one, such as Z or +09:00")
    return AtTime(epoch_ms)


def _epoch_ms(given: Given, name: str) -> int:
    text = given[name].strip()
    if not re.fullmatch(r"\d{1,18}|-[12]", text):
        raise RefusedError(f"{name}={text}: give a whole number of epoch milliseconds, -2 (earliest) or -1 (latest)")
    return int(text)


def _time(epoch_ms: int) -> Start:
    """A time of Kafka's, whose -2 and -1 are the ends of a log as well."""
    match epoch_ms:
        case -2:
            return "earliest"
        case -1:
            return "latest"
        case _:
            return AtTime(epoch_ms)


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
        positions = _by_topic(
            name, text, lambda logs: {_partition(number): position(place) for number, place in logs.items()}
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise RefusedError(
            f"{name}={text} is neither earliest, latest, nor JSON",
            hint='write {"topic":{"0":23,"1":-2}}, with -2 for the earliest, -1 for the latest, or "1042:17" for a '
            "message id",
        ) from None
    return PerLog(positions)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < -2:
        raise ValueError(value)
    return value


def _by_topic(option: str, text: str, parsed: Callable[[Any], T]) -> dict[str, T]:
    """What JSON says of each topic. Raises `RefusedError` for what is named twice: only one of the two would count."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return _once(option, pairs)

    given: Any = json.loads(text, object_pairs_hook=once)
    return _once(option, [(str(topic_of(topic)), parsed(entry)) for topic, entry in given.items()])


def _once(option: str, pairs: list[tuple[str, T]]) -> dict[str, T]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise RefusedError(f"{option} has {twice} twice", hint="give it once")
    return by_name


def _partition(name: str) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,9}", name):
        raise ValueError(name)
    return int(name)


def _offset(value: object) -> int:
    if _whole(value) < 0:
        raise ValueError(value)
    return _whole(value)
