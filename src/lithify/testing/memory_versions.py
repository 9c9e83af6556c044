"""The versions of a topic in memory: a whole state with its segments, and what an edit makes of it.

Which bytes only earlier versions name is computed from whole lists of files, as the specification of what the
Iceberg store computes from an edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lithify.model.formats.features import features_after, format_with
from lithify.model.segment import Segment, sizes_of, without
from lithify.model.sources.origin import OWN
from lithify.model.topic.edit import KeptVersion, TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.expiring import without_restored


@dataclass(frozen=True, slots=True)
class Version:
    """One version."""

    state: TopicState
    segments: tuple[Segment, ...]
    view: tuple[Segment, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """By path, the sizes of its files."""
        return sizes_of(self.segments + self.view)


def edited(before: Version, edit: TopicEdit) -> Version:
    """The version that an edit makes of `before`."""
    logs = {log.partition: log for log in before.state.logs} | dict(edit.logs)
    version = before.state.version + 1
    features = features_after(before.state.features, edit)
    state = replace(
        before.state,
        version=version,
        settings=edit.settings or before.state.settings,
        own_settings=before.state.own_settings if edit.own_settings is None else edit.own_settings,
        abandoned=before.state.abandoned if edit.abandon is None else edit.abandon,
        features=features,
        format_version=format_with(features),
        logs=tuple(logs[partition] for partition in sorted(logs)),
        clock_ms=before.state.clock_ms if edit.clock_ms is None else edit.clock_ms,
        origin=before.state.origin if edit.origin in (None, OWN) else edit.origin,
        replica=edit.replica_after(before.state.replica, before.state.version, version),
    )
    return Version(
        state,
        _exchanged(before.segments, edit.remove, edit.add),
        _exchanged(before.view, edit.view_remove, edit.view_add),
    )


def kept_after(known: Sequence[KeptVersion], before: Version, after: Version, edit: TopicEdit) -> list[KeptVersion]:
    """The retained versions once `edit` has closed `before`."""
    gone = sum(size for path, size in before.sizes.items() if path not in after.sizes)
    sizes = {version.version: version.no_longer_named_bytes or 0 for version in known}
    if edit.verb is Verb.UNDO:
        sizes = without_restored(sizes, sum(size for path, size in after.sizes.items() if path not in before.sizes))
    closed = KeptVersion(before.state.version, edit.closed_at_ms, edit.run_id, edit.verb, gone)
    return [closed, *(replace(version, no_longer_named_bytes=sizes[version.version]) for version in known)]


def _exchanged(
    segments: tuple[Segment, ...], remove: tuple[Segment, ...], add: tuple[Segment, ...]
) -> tuple[Segment, ...]:
    return tuple(sorted((*without(segments, remove), *add), key=lambda s: (s.partition, s.base_offset)))
