"""How far a reader has read a log: what it stores, to continue there later (C7, C49)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.log import LogState, TopicState


@dataclass(frozen=True, slots=True)
class Cursor:
    """A reader has read all of a log below `offset`, when the log was in `epoch` or before.

    `identity` is that of the topic, `generation` counts the truncations of the log. The partition is not part
    of it: documents store cursors by topic and partition. `as_of_ms` is in cursors that were stored before logs
    had epochs: when the reader loaded the version that it read.
    """

    identity: str
    generation: int
    offset: int
    epoch: int
    as_of_ms: int | None = None

    @classmethod
    def of(cls, state: TopicState, log: LogState, offset: int) -> Cursor:
        """A reader that has read a version of the log up to `offset`."""
        return cls(state.identity, log.generation, offset, log.epoch)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Cursor:
        """Raises `ValueError`, `TypeError` or `KeyError` for what `to_json` did not write."""
        identity, generation, offset = str(given["identity"]), int(given["generation"]), int(given["offset"])
        if "epoch" in given:
            return cls(identity, generation, offset, int(given["epoch"]))
        return cls(identity, generation, offset, 0, int(given["as_of_ms"]))

    def to_json(self) -> dict[str, Any]:
        """As all documents store it: position files, offsets of Kafka's groups, checkpoints of Spark."""
        return {name: value for name, value in asdict(self).items() if value is not None}
