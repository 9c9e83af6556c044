"""Makes the copy of a Kafka topic a topic of its own (C70)."""

from __future__ import annotations

from lithify.ports.topic import OpenTopic
from lithify.reports.ingest import CopyPromoteReport
from lithify.service.ingest.promote_copy import promote_copy


def promote(topic: OpenTopic) -> CopyPromoteReport:
    """Ends a copy irreversibly: it takes records as any topic from then on, and no ingest can continue with it.

    Its offsets continue where the copy ended. Raises `PolicyError` for a topic that is not a copy of a Kafka topic, or
    is a replica; `UnknownTopicError`.
    """
    return promote_copy(topic.warehouse, topic.topic_name)
