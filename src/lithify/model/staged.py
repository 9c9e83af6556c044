"""Segments that tasks wrote for a batch which is not committed yet: no version names them."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.names import TopicName
from lithify.model.segment import Segment


@dataclass(frozen=True, slots=True)
class StagedLog:
    """What one task wrote for one log, in the order in which its records came.

    The offsets in the files count from the log end that the task knew, in the topic of that `identity`.
    """

    topic: TopicName
    identity: str
    partition: int
    segments: tuple[Segment, ...]
    last_timestamp_ms: int
