"""Streams: the namespaces that topics are in, and the attributes that were set for them.

A stream exists once it was created, or has a topic. Its attributes are text by name; what they mean is for
`model/settings/stream_attributes.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from lithify.model.names import TopicName


class Streams(Protocol):
    """The streams of a catalog. A catalog that stores no properties of namespaces has streams without attributes."""

    def create_stream(self, stream: str, attributes: Mapping[str, str]) -> None:
        """Raises `RefusedError`, and `WarehouseError` if attributes cannot be stored."""
        ...

    def streams(self) -> tuple[str, ...]:
        """The streams that exist, by name."""
        ...

    def stream_attributes(self, streams: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """The attributes that were set, by stream; of those streams alone that were created or changed.

        Of the others nothing is known, nor what their topics inherited before the catalog was lost.
        """
        ...

    def stream_topics(self, stream: str) -> tuple[TopicName, ...]:
        """Its topics by name. Raises `UnknownStreamError`."""
        ...

    def change_stream(self, stream: str, attributes: Mapping[str, str], remove: Collection[str]) -> None:
        """Sets these attributes and removes those. Raises `UnknownStreamError` or `WarehouseError`."""
        ...

    def edit_lock(self, stream: str) -> AbstractContextManager[object]:
        """Lets edits of a stream take turns, where its processes have a disk or database to take them on."""
        ...

    def drop_stream(self, stream: str) -> None:
        """Forgets an empty stream. Raises `UnknownStreamError`, and `RefusedError` while there are tables in it."""
        ...
