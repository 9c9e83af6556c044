"""The port of `repair`: what is left of topics that the catalog cannot show, and making them topics again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.model.remains import Remains
from lithify.model.segment import Segment


class Salvage(Protocol):
    """The remains of topics in one warehouse."""

    def topics(self) -> tuple[TopicName, ...]:
        """Topics that the catalog lists, and those that only folders in the warehouse tell of."""
        ...

    def remains(self, name: TopicName, folder: str | None, metadata: str | None) -> Remains:
        """What there is of a topic, in `folder` if it is given; `metadata` is then taken for its newest version.

        Raises `UnknownTopicError` where nothing is, `RefusedError` where it cannot be told which is meant.
        """
        ...

    def register(self, name: TopicName, metadata: str, was: str) -> None:
        """The catalog names this metadata from now on, in place of `was`, which it had under the name.

        Raises `ConflictError` if it has something else there by now.
        """
        ...

    def unite(self, state: TopicState, segments: Sequence[Segment], run_id: str) -> tuple[Segment, ...]:
        """New segments with the records of overlapping ones, each offset once. Raises `DamagedError`."""
        ...

    def rebuild(self, state: TopicState, segments: Sequence[Segment], replaces: Sequence[str], was: str) -> None:
        """Makes the topic anew in the folder of `state`, with its logs and these segments, in place of `was`.

        What is left there of topics with the identities `replaces` counts no more from then on. Raises
        `ConflictError` if the catalog has something else by now.
        """
        ...

    def finish_deletion(self, location: str) -> None:
        """Deletes what a deletion that broke off has left in a folder."""
        ...
