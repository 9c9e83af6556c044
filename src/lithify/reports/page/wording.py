"""Numbers, times and errors as words, the same wherever people read them; texts that change nothing there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from lithify.model.settings.units import format_bytes, format_duration, format_time

_STEERING = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that JSON allows and a terminal acts on or hides: controls, direction marks, zero-width characters."""


def visible(text: str) -> str:
    """Text with its unprintable characters escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]


def inert_json(text: str) -> str:
    """The same JSON, with characters escaped that a terminal acts on."""
    return _STEERING.sub(lambda match: json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f", text)


def count(number: int) -> str:
    """1234567 as `1,234,567`."""
    return f"{number:,}"


def in_units(name: str, value: str) -> str:
    """The value of a setting, with the same in larger units: `86400000 = 24 h`, `(none)`."""
    if not value.lstrip("-").isdecimal():
        return value or "(none)"
    number, milliseconds = int(value), _MILLISECONDS.get(name, 1 if name.endswith(".ms") else 0)
    if milliseconds and number * milliseconds >= 1000:
        return f"{value} = {format_duration(number * milliseconds)}"
    return f"{value} = {format_bytes(number)}" if name.endswith(".bytes") and number >= 1024 else value


_MILLISECONDS = {"ttl": 1000, "mincompactionlag": 1, "deleteretention": 1}
"""In a unit of the attributes of streams that are durations."""


def change_of(before: int, after: int, noun: str) -> str:
    """`3 → 2 records`, `1 record`."""
    return f"{change(before, after, count)} {noun if after == 1 else f'{noun}s'}"


def change(before: int, after: int, text: Callable[[int], str]) -> str:
    """`3 → 4`, or only the number if it is the same."""
    return text(after) if before == after else f"{text(before)} → {text(after)}"


def when(time_ms: int, now_ms: int) -> str:
    """A time, and how far it is from now."""
    distance = (
        f"in {format_duration(time_ms - now_ms)}" if time_ms > now_ms else f"{format_duration(now_ms - time_ms)} ago"
    )
    return f"{format_time(time_ms)} ({distance})"


def coded(text: str, code: str | None) -> str:
    """The text of an error within a line: `[UnknownTopic] ...`."""
    return text if code is None else f"[{code}] {text}"


def or_dash(number: int | None, text: Callable[[int], str]) -> str:
    """The number as text; a dash where there is none."""
    return "-" if number is None else text(number)


def at_most(size: int) -> str:
    """A bound of bytes; a dash for none at all."""
    return f"≤ {format_bytes(size)}" if size else "-"


def as_judged(now_ms: int, *, given: bool) -> str:
    """What is added where lags and expiry were judged as of another time than the clock's."""
    return f" (judged as of {format_time(now_ms)}, not of the clock)" if given else ""
