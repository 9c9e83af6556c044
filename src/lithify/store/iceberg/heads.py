"""The newest states of many topics, with as little work as can be: one small file each.

    mark ─► metadata.json ─► properties, current snapshot ─► state       no query, no model of the whole
      └── the file is gone, or is not what it should be ─► the usual way, which says why

A table's metadata lists every kept snapshot, and to make objects of them all takes most of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lithify.columnar.access import FileAccess, local_path
from lithify.errors import LithifyError
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.store.iceberg import codec

READ_AT_ONCE = 16
"""Requests under way while the metadata of many topics of a remote warehouse is read."""

AHEAD = 1024
"""Topics whose states are in memory at once."""

Load = Callable[[TopicName], TopicState]


def load_many(
    wanted: Sequence[tuple[TopicName, str | None]], access: FileAccess, load: Load
) -> Iterator[tuple[TopicName, TopicState | LithifyError]]:
    """The newest version of each topic, as of its mark; `load` is the usual way."""

    def one(topic: tuple[TopicName, str | None]) -> tuple[TopicName, TopicState | LithifyError]:
        name, mark = topic
        try:
            state = None if mark is None else _read(name, mark, access)
            return name, state or load(name)
        except LithifyError as error:
            return name, error

    if all(mark is None or local_path(mark) for _, mark in wanted):
        yield from map(one, wanted)  # threads only get in each other's way
        return
    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        for first in range(0, len(wanted), AHEAD):
            yield from pool.map(one, wanted[first : first + AHEAD])


def _read(name: TopicName, mark: str, access: FileAccess) -> TopicState | None:
    """The state in a metadata file; None if it is not there any more, or cannot be read like this."""
    try:
        with access.open(mark) as source:
            content = json.loads(bytes(source.read()))
        return codec.state_of(name, _head(content))
    except (LithifyError, OSError, LookupError, TypeError, ValueError):
        return None


def _head(metadata: Mapping[str, Any]) -> codec.Head:
    current = metadata["current-snapshot-id"]
    (version,) = (s["sequence-number"] for s in metadata["snapshots"] if s["snapshot-id"] == current)
    return codec.Head(metadata["properties"], version, metadata["table-uuid"], metadata["location"])
