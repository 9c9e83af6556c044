"""The failures of a log whose rounds fail: when to retry it, or that it is quarantined (C31).

    failed once ─► waits ─► failed again ─► waits twice as long ─► ... ─► quarantined ─► released by a person

A small document beside the topic stores them, so that every cleaner knows them, also after a restart. A
successful round removes its log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class LogFailure:
    """The latest failures of one log in a row. Times in epoch ms."""

    failures: int
    first_ms: int
    last_ms: int
    retry_ms: int
    """The log is not retried before this time; without meaning once it is quarantined."""
    error: str
    quarantined: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LogFailure:
        """The inverse of `to_json`; keys of later versions are ignored. Raises `TypeError`."""
        names = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in names})


def number_of_times(number: int) -> str:
    """`once`, `3 times`."""
    return "once" if number == 1 else f"{number:,} times"
