"""A topic of another system, as that system describes it: what a copy of it goes by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic of the source. `topic_id` is another one once it was deleted and created again."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SourceLog:
    """One partition of it, as a reader of committed records sees it: [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int
