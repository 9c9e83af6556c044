"""The failures of a log whose rounds fail: when to retry it, or that it is quarantined (C31).

    failed once ─► waits ─► failed again ─► waits twice as long ─► ... ─► quarantined ─► `quarantine release`

A small document beside the topic stores them, so that every cleaner has them, even after a restart. A
successful round removes its log.

    {"logs": {"0": {"failures": 3, "retry_ms": ..., ...}}}
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
    error_code: str | None = None
    """None if an earlier version of Lithify noted it."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LogFailure:
        """The inverse of `to_json`; keys of later versions are ignored. Raises `TypeError`."""
        names = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in names})


def failures_to_json(failures: Mapping[int, LogFailure]) -> dict[str, Any]:
    """The document of a topic's failing logs, by partition."""
    return {"logs": {str(partition): failure.to_json() for partition, failure in sorted(failures.items())}}


def failures_from_json(content: Mapping[str, Any]) -> dict[int, LogFailure]:
    """The inverse of it. Raises `AttributeError`, `LookupError`, `TypeError` or `ValueError` for something else."""
    return {int(partition): _checked(LogFailure.from_json(data)) for partition, data in content["logs"].items()}


def _checked(failure: LogFailure) -> LogFailure:
    for number in (failure.failures, failure.first_ms, failure.last_ms, failure.retry_ms):
        if type(number) is not int:
            raise TypeError(f"{number!r} is not a number")
    code = failure.error_code
    if type(failure.error) is not str or type(failure.quarantined) is not bool or not isinstance(code, str | None):
        raise TypeError(f"{failure!r} is not a failure")
    return failure


def number_of_times(number: int) -> str:
    """`once`, `3 times`."""
    return "once" if number == 1 else f"{number:,} times"
