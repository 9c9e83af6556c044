"""Sees to it that what a stream reads is of the log that the copy was compared with (C72).

    prepare ─► epochs ─► is it the copy's? ─► batch ─► still the same epochs, and the copy's record? ─► commit
                                                            └─► no: a new stream

A log loses records only with another epoch of its leader. A cluster whose disks were all restored counts the same ones
again: so what a batch was read from is compared with the copy once more (`Source.after_read`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lithify.errors import BrokerError
from lithify.model.sources.source import SourceTopic
from lithify.ports.source import Source


@dataclass(slots=True)
class SameLog:
    """What one ingest knows of the logs that its stream of one topic reads."""

    source: Source
    leader_moved: bool = False
    """Whether the stream has to begin anew."""
    _epochs: Mapping[int, int | None] = field(default_factory=dict)

    def begin(self, topic: SourceTopic) -> None:
        """Before the copy is compared."""
        self.leader_moved = False
        self._epochs = self.source.epochs(topic)

    def check(self, topic: SourceTopic) -> None:
        """Raises `BrokerError` if the source may have lost records since `begin`.

        What Spark has read, and reads ahead, would be a mixture then: only a new stream reads what there is now.
        """
        newest = self.source.epochs(topic)
        self._epochs = {**newest, **self._epochs}  # of partitions that were added meanwhile nothing was read before
        if moved := [p for p, epoch in newest.items() if epoch != self._epochs[p]]:
            self.leader_moved = True
            raise BrokerError(
                f"{self.source.system}'s {topic.name}-{moved[0]} has a new leader since it was read",
                hint="start it again; nothing was lost",
            )

    def epochs(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """The epochs in which they were read, if the source counts any."""
        return {p: epoch for p in partitions if (epoch := self._epochs.get(p)) is not None}
