"""The versions of a topic that are kept, and what they hold (C6, C7). Reads metadata only."""

from __future__ import annotations

from lithify.errors import UnknownVersionError
from lithify.model.log import KeptVersion, TopicState
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse
from lithify.reports.versions import VersionReport, version_report


def kept_versions(warehouse: Warehouse, name: TopicName) -> tuple[VersionReport, ...]:
    """Every kept version, newest first. Raises `UnknownTopicError`."""
    newest = warehouse.store.load(name)
    states = ((kept, _state(warehouse, name, kept)) for kept in warehouse.store.versions(name))
    retention_ms = newest.settings.versions_retention_ms
    return tuple(version_report(kept, state, retention_ms) for kept, state in states if state is not None)


def _state(warehouse: Warehouse, name: TopicName, kept: KeptVersion) -> TopicState | None:
    try:
        return warehouse.store.load_version(name, kept.version)
    except UnknownVersionError:  # it expired in another commit since it was listed
        return None
