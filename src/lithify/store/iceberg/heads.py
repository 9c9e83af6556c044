"""The newest state of a topic, with as little work as can be: one small file, for those who look at many.

    mark ─► metadata.json ─► properties, current snapshot ─► state       no query, no model of the whole
      └── the file is gone, or is not what it should be ─► the usual way, which says why

A table's metadata lists every kept snapshot, and to make objects of them all takes most of the time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lithify.columnar.access import FileAccess
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.store.iceberg import codec
from lithify.store.iceberg.layout import VIEW_BRANCH


@dataclass(frozen=True, slots=True)
class Lists:
    """The manifest lists of a version: of the log, and of the compacted views if there are any."""

    log: str
    view: str | None


def read_head(access: FileAccess, name: TopicName, mark: str) -> tuple[TopicState, Lists] | None:
    """The state in a metadata file; None if it is not there any more, or cannot be read like this."""
    try:
        with access.open(mark) as source:
            metadata = json.loads(bytes(source.read()))
        snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
        main, view = snapshots[metadata["current-snapshot-id"]], metadata["refs"].get(VIEW_BRANCH)
        head = codec.Head(metadata["properties"], main["sequence-number"], metadata["table-uuid"], metadata["location"])
        state = codec.state_of(name, head)
        return state, Lists(
            main["manifest-list"], None if view is None else snapshots[view["snapshot-id"]]["manifest-list"]
        )
    except Exception:  # damaged bytes fail in any way here; the usual way meets them too, and tells
        return None
