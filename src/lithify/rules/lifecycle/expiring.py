"""Which retained versions expire by their age (C6).

    kept, newest first    30   27   22   19   14
    closed                at 9 at 8 at 5 at 6 at 2      before 6: 22 expires, and all older ones

A version was closed before any newer one, whatever the clocks of the commits said. So expiry never leaves
a gap between retained versions: `verify` compares each with the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Protocol, TypeVar

from lithify.model.settings.topic_settings import TopicSettings


class ClosedVersion(Protocol):
    """A retained version, as the port or a store has it."""

    @property
    def closed_ms(self) -> int: ...


V = TypeVar("V", bound=ClosedVersion)


def expiry_ms(settings: TopicSettings, now_ms: int) -> int:
    """Versions closed before that time are past `versions.retention.ms`: `sweep` may delete their files."""
    return now_ms - settings.versions_retention_ms + 1


def unexpired(versions: Iterable[V], closed_before_ms: int | None) -> tuple[V, ...]:
    """The part of `versions`, newest first, that does not expire; with None all of them."""
    if closed_before_ms is None:
        return tuple(versions)
    return tuple(takewhile(lambda version: version.closed_ms >= closed_before_ms, versions))


def without_restored(sizes: Mapping[int, int], restored_bytes: int) -> dict[int, int]:
    """By closed version, how many bytes of files are no longer named, after an `undo` named some of them again.

    They were dropped by the commits since the round that is undone, so the newest versions are charged first.
    """
    left, after = restored_bytes, dict(sizes)
    for version in sorted(sizes, reverse=True):
        again = min(left, after[version])
        after[version] -= again
        left -= again
    return after
