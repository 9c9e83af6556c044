"""The port of `repair`: what is left of topics whose catalog entry is lost, and recreating them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lithify.model.names import TopicName
from lithify.model.remains import Remains
from lithify.model.segment import Segment
from lithify.model.topic.state import TopicState


class Salvage(Protocol):
    """The remains of topics in one warehouse."""

    def topics(self) -> tuple[TopicName, ...]:
        """Topics that the catalog lists, and those found only as folders in the warehouse."""
        ...

    def remains(self, name: TopicName, folder: str | None, metadata: str | None) -> Remains:
        """The remains of a topic, in `folder` if it is given; `metadata` is then taken as its newest version.

        Raises `UnknownTopicError` if there are none, `RefusedError` if several are equally good.
        """
        ...

    def register(self, name: TopicName, metadata: str, was: str) -> None:
        """Makes the catalog name this metadata, in place of `was`, which it had under the name.

        Raises `ConflictError` if the catalog has changed meanwhile.
        """
        ...

    def unite(self, state: TopicState, segments: Sequence[Segment], run_id: str) -> tuple[Segment, ...]:
        """New segments with the records of overlapping ones, each offset once. Raises `DamagedError`."""
        ...

    def rebuild(self, state: TopicState, segments: Sequence[Segment], replaces: Sequence[str], was: str) -> None:
        """Recreates the topic in the folder of `state`, with its logs and these segments, in place of `was`.

        Remaining files of topics with the identities `replaces` no longer count from then on. Raises
        `ConflictError` if the catalog has changed meanwhile.
        """
        ...

    def finish_deletion(self, location: str) -> None:
        """Deletes the files that an interrupted deletion has left in a folder."""
        ...
