"""When a file that nothing names may be deleted (C6).

named once     `versions.retention.ms` after the last commit that stopped naming it
never named    once its last change is older than `sweep.grace.ms`: a run may still be writing it
"""

from __future__ import annotations

from lithify.model.settings import TopicSettings


def may_be_swept(modified_ms: int, closed_ms: int | None, settings: TopicSettings, now_ms: int) -> bool:
    """Whether the file may go. `closed_ms` is when a commit stopped naming it, None if none ever named it."""
    if closed_ms is not None:
        return now_ms >= closed_ms + settings.versions_retention_ms
    return now_ms > modified_ms + settings.sweep_grace_ms
