"""Makes the copy of a Kafka topic a topic of its own (C70)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lithify.reports.ingest import CopyPromoteReport
from lithify.service.ingest.promote_copy import promote_copy

if TYPE_CHECKING:
    from lithify.api.topic import Topic


def promote(topic: Topic) -> CopyPromoteReport:
    """Ends a copy irreversibly: it takes records as any topic from then on, and no ingest can continue with it.

    Its offsets continue where the copy ended. Raises `PolicyError` for a topic that is no copy of a Kafka topic, or
    is a replica; `UnknownTopicError`.
    """
    return promote_copy(topic.warehouse, topic.topic_name)
