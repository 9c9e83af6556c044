"""The values of given options, by their canonical names, each refused with its name where it is not of its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lithify.errors import RefusedError
from lithify.model.names import TopicName, parse_topic
from lithify.model.settings.units import parse_duration_ms

Given = Mapping[str, str]


def find(options: Given, name: str) -> str | None:
    """The value of an option, whatever the case in which it was written."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


def topic_of(text: str) -> TopicName:
    return parse_topic(text).whole("read or written")


def flag(given: Given, name: str, *, default: bool) -> bool:
    text = given.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise RefusedError(f"{name}={text}: give true or false")
    return text.lower() == "true"


def number(given: Given, name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,18}", text.strip()):
        raise RefusedError(f"{name}={text}: give a whole number of 0 or more")
    return int(text)


def positive(given: Given, name: str) -> int | None:
    limit = number(given, name)
    if limit == 0:
        raise RefusedError(f"{name}=0: give a number greater than 0")
    return limit


def duration_ms(given: Given, name: str, *, default: int) -> int:
    """A time as Spark writes it: `90s`, `15m`, `1h`; milliseconds without a unit."""
    text = given.get(name)
    if text is None:
        return default
    try:
        time_ms = parse_duration_ms(text)
    except ValueError as error:
        raise RefusedError(f"{name}: {error}") from None
    if time_ms < 0:
        raise RefusedError(f"{name}={text}: give a time of 0 or more")
    return time_ms
