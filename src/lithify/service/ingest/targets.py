"""Names of the topics that an ingest copies into."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.errors import RefusedError
from lithify.model.names import TopicName, parse_topic


def targets(sources: Sequence[str], into: str | None) -> tuple[tuple[str, TopicName], ...]:
    """Each topic of the source with the one that it is copied into.

    `into` is one topic, for one source, or a stream (`shop/`), in which topics keep their names.
    Raises `RefusedError` or `InvalidNameError`.
    """
    if into is None or into.endswith("/"):
        return tuple((source, parse_topic(f"{into or ''}{source}").whole("copied into")) for source in sources)
    if len(sources) != 1:
        raise RefusedError(
            f"{len(sources)} topics cannot go into one topic, {into}", hint="name a stream instead: --into shop/"
        )
    return ((sources[0], parse_topic(into).whole("copied into")),)
