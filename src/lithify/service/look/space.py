"""The space that a topic takes, from metadata alone: it lists no folder (C6).

    the log's files          live
    the view's, without those of the log
    kept versions            each commit notes what it stopped naming (`no_longer_named_bytes`)

A log and its view may name the same file. So side by side the manifests of both are read; in place, none.
"""

from __future__ import annotations

from collections.abc import Sequence

from lithify.model.segment import sizes_of
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.edit import KeptVersion
from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore
from lithify.reports.topic_space import Space
from lithify.reports.topics import volumes_of


def space_of(store: LogStore, state: TopicState) -> Space:
    """The space of the newest version and of those that are kept. Raises what the store's reading calls raise."""
    live, view = _named_bytes(store, state)
    kept = store.versions(state.name)
    earlier = _earlier_bytes(kept)
    return Space(
        stored_bytes=None if earlier is None else live + view + earlier,
        live_bytes=live,
        view_bytes=view,
        earlier_versions=len(kept),
        earlier_versions_bytes=earlier,
        earlier_versions_until_ms=_until_ms(kept, state.settings),
    )


def _named_bytes(store: LogStore, state: TopicState) -> tuple[int, int]:
    """Of the logs, and of what only their views have."""
    logs, views = volumes_of(state)
    if views is None:
        return logs.size_bytes, 0
    live = sizes_of(store.segments(state))
    view = sizes_of(store.view(state))
    return sum(live.values()), sum(size for path, size in view.items() if path not in live)


def _earlier_bytes(kept: Sequence[KeptVersion]) -> int | None:
    sizes = [version.no_longer_named_bytes for version in kept]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _until_ms(kept: Sequence[KeptVersion], settings: TopicSettings) -> int | None:
    closed = (version.closed_ms for version in kept if version.no_longer_named_bytes != 0)
    last_ms = max(closed, default=None)
    return None if last_ms is None else last_ms + settings.versions_retention_ms
