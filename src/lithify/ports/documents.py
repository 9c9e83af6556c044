"""Small JSON documents that change without a commit: of one topic, or of all topics of a catalog.

    value ──► service/documents.py ──► JSON object ──► Documents ──► <topic>/lithify/<kind>.json
                                                                     <topic>/lithify/<kind>/<key>.json

What is put takes the place of what was there. A document that is not what was put there is damaged (C48).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from lithify.model.topic.state import TopicState

REPORTS_KEPT = 100
"""Reports per topic that survive later rounds and restarts (C42)."""


class DocumentKind(StrEnum):
    """What a document is for: the name of its file, or of the folder where there are several."""

    REPORT = "reports"
    """Of a round, by the id that its commit names (C42)."""
    RATES = "rates"
    """What rounds under way keep to; without a topic, what all cleaners keep to (C40)."""
    CLEANERS = "cleaners"
    """How many cleaners are running, for a rate that they share; of no topic (C40)."""
    FAILURES = "failures"
    """The logs whose last rounds failed (C31)."""
    SOURCE = "source"
    """The topic elsewhere that this one is a copy of."""
    PROMOTION = "promotion"
    """That such a copy was promoted: a separate document, as a late ingest writes the one of its source (C70)."""
    SOURCE_ENDS = "source_ends"
    """Up to where it was read there, and when (C71)."""
    FORMAT = "format"
    """What the warehouse can hold; of no topic (C66)."""
    HEARTBEAT = "runs"
    """The last heartbeat of a run, by its id (C45)."""


class Documents(Protocol):
    """Documents of topics; without a topic they are the catalog's."""

    def get_document(self, topic: TopicState | None, kind: DocumentKind, key: str = "") -> Mapping[str, Any] | None:
        """None if there is none. Raises `DamagedError`, which names it, or `WarehouseError`."""
        ...

    def put_document(
        self, topic: TopicState | None, kind: DocumentKind, content: Mapping[str, Any], key: str = ""
    ) -> None:
        """Stores it in place of what was there. Raises `WarehouseError`."""
        ...

    def document_path(self, topic: TopicState | None, kind: DocumentKind, key: str = "") -> str:
        """Where it is, or would be: for messages, and for tasks that follow it. Raises `WarehouseError`."""
        ...
