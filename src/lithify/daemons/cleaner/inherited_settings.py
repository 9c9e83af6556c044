"""Lets topics inherit what a `stream edit` that was interrupted has left undone (C43, C56).

    look ─► attributes of all streams, read once ─► as at the last look: nothing to do for their topics
                                                 └► changed: their topics are read again

    topic that is read ─► has what its stream says ─► its work is found as it is
                       └► does not ─► altered, and its work found under the new settings

No round runs under other settings than those that the stream has now: a topic that cannot inherit them fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from threading import Lock

from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.model.settings.stream_attributes import StreamAttributes, with_attributes
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.change.streams import inherit

Stored = Mapping[str, Mapping[str, str]]


@dataclass(slots=True)
class Inheritance:
    """The attributes of streams as of the last look; several threads may request them."""

    warehouse: Warehouse
    reporter: EventReporter
    _stored: dict[str, Mapping[str, str] | None] = field(default_factory=dict)
    """By stream; None if nothing is known of it."""
    _lock: Lock = field(default_factory=Lock)

    def refresh(self, streams: Collection[str]) -> frozenset[str]:
        """Reads the attributes of these streams; returns those that changed. Raises `WarehouseError`."""
        stored = self.as_stored(streams)
        with self._lock:
            before, self._stored = self._stored, {stream: stored.get(stream) for stream in streams}
        return frozenset(s for s in streams if s in before and before[s] != stored.get(s))

    def as_stored(self, streams: Collection[str]) -> Stored:
        """The attributes that these streams have now. Raises `WarehouseError`."""
        return self.warehouse.store.stream_attributes(streams) if streams else {}

    def settled(self, state: TopicState, now: Stored | None = None) -> TopicState:
        """The topic once it has its stream's settings: `now`, or as of the last look.

        Raises `InvalidSettingError` if that contradicts settings of its own, or what `alter` raises.
        """
        if state.replica is not None:
            return state
        stored = self._of(state.name.stream) if now is None else now.get(state.name.stream)
        if stored is None:
            return state
        report = inherit(self.warehouse, state, with_attributes(StreamAttributes(), stored))
        if report is None:
            return state
        if report.changed:  # else another cleaner was first
            self.reporter.inherited(state.name, report)
        return self.warehouse.store.load(state.name)

    def _of(self, stream: str) -> Mapping[str, str] | None:
        with self._lock:  # of a stream that is seen for the first time, one thread reads them
            if stream not in self._stored:
                self._stored[stream] = self.warehouse.store.stream_attributes([stream]).get(stream)
            return self._stored[stream]
