"""When the replica of a topic is due for a pass, and when one that failed is tried again.

tokens of source and target   as after the last pass ─► idle: nothing is read
                              others                 ─► due
failure       1    2     3     4     5     6 ...
tried after   5 s  10 s  20 s  40 s  80 s  2 min ...   each by up to a fifth more, so that a thousand topics
                                                       of a target that was gone do not come back at once
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.replicas.replica_progress import TopicProgress

FIRST_BACKOFF_MS = 5_000
LONGEST_BACKOFF_MS = 2 * 60_000
JITTER = 0.2
"""The largest part of a delay that is added to it."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Change tokens of a topic on both sides; None if only loading the topic can tell, or there is no topic."""

    source: str | None
    target: str | None


def is_due(seen: Tokens | None, tokens: Tokens, noted: TopicProgress | None, now_ms: int) -> bool:
    """Whether a pass should look closer. `seen` are the tokens at the begin of the last one that succeeded."""
    if noted is None:
        return True
    if noted.retry_ms is not None:
        # A clock that went back does not prolong the wait.
        return not noted.updated_ms <= now_ms < noted.retry_ms
    return seen is None or seen != tokens or tokens.source is None


def retry_after_ms(failures: int, chance: float) -> int:
    """The delay after this number of failures in a row; `chance` is from 0 to 1."""
    delay_ms: int = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS << min(failures - 1, 10))
    return round(delay_ms * (1 + JITTER * chance))
