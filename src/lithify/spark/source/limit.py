"""The end offsets of a batch under `maxOffsetsPerTrigger`: each log gets its share, as in Spark's Kafka source.

waiting   log 0: 900   log 1: 90   log 2: 10         most = 100
taken            90           9           1
"""

from __future__ import annotations

from lithify.model.scan import Offsets


def limited(start: Offsets, end: Offsets, most: int) -> dict[str, dict[int, int]]:
    """End offsets that total about `most` offsets above `start`; a log with a backlog advances by at least 1."""
    total = sum(max(0, at - start[topic][p]) for topic, logs in end.items() for p, at in logs.items())
    if total <= most:
        return {topic: dict(logs) for topic, logs in end.items()}
    return {topic: {p: _end(start[topic][p], at, most, total) for p, at in logs.items()} for topic, logs in end.items()}


def _end(start: int, end: int, most: int, total: int) -> int:
    if end <= start:
        return end
    return min(end, start + max(1, (end - start) * most // total))
