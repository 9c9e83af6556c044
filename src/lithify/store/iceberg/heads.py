"""The newest states of many topics, with as little work as can be: one small file each.

    mark ─► metadata.json ─► properties, current snapshot ─► state       no query, no model of the whole
      └── the file is gone, or is not what it should be ─► the usual way, which says why

A table's metadata lists every kept snapshot, and to make objects of them all takes most of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lithify.columnar.access import FileAccess
from lithify.errors import LithifyError
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.side_by_side import side_by_side
from lithify.store.iceberg import codec
from lithify.store.iceberg.layout import VIEW_BRANCH

Load = Callable[[TopicName], TopicState]


@dataclass(frozen=True, slots=True)
class Lists:
    """The manifest lists of a version: of the log, and of the compacted views if there are any."""

    log: str
    view: str | None


Remember = Callable[[TopicState, Lists], None]


@dataclass(frozen=True, slots=True)
class Heads:
    """`load` is the usual way; `remember` is told where the segments of a version are listed."""

    access: FileAccess
    load: Load
    remember: Remember

    def load_many(
        self, wanted: Sequence[tuple[TopicName, str | None]], at_once: int
    ) -> Iterator[tuple[TopicName, TopicState | LithifyError]]:
        """The newest version of each topic, as of its mark."""
        return side_by_side(self._one, wanted, at_once)

    def _one(self, topic: tuple[TopicName, str | None]) -> tuple[TopicName, TopicState | LithifyError]:
        name, mark = topic
        try:
            state = None if mark is None else self._read(name, mark)
            return name, state or self.load(name)
        except LithifyError as error:
            return name, error

    def _read(self, name: TopicName, mark: str) -> TopicState | None:
        """The state in a metadata file; None if it is not there any more, or cannot be read like this."""
        try:
            with self.access.open(mark) as source:
                metadata = json.loads(bytes(source.read()))
            snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
            main, view = snapshots[metadata["current-snapshot-id"]], metadata["refs"].get(VIEW_BRANCH)
            head = codec.Head(
                metadata["properties"], main["sequence-number"], metadata["table-uuid"], metadata["location"]
            )
            state = codec.state_of(name, head)
            lists = Lists(
                main["manifest-list"], None if view is None else snapshots[view["snapshot-id"]]["manifest-list"]
            )
        except (LithifyError, OSError, LookupError, TypeError, ValueError):
            return None
        self.remember(state, lists)
        return state
