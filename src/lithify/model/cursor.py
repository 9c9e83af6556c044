"""How far a reader has read a log: what it stores, to continue there later (C7, C49)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.log import LogState, TopicState


@dataclass(frozen=True, slots=True)
class Cursor:
    """Everything of a log below `offset` was taken, when the log was in `epoch` or before.

    `identity` is that of the topic, `generation` counts the truncations of the log. Of which partition it is
    says the name under which it is kept. `as_of_ms` is left of cursors that were stored before logs had
    epochs: when the version was loaded that they were taken in.
    """

    identity: str
    generation: int
    offset: int
    epoch: int
    as_of_ms: int | None = None

    @classmethod
    def of(cls, state: TopicState, log: LogState, offset: int) -> Cursor:
        """In a log as a version has it."""
        return cls(state.identity, log.generation, offset, log.epoch)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Cursor:
        """Raises `ValueError`, `TypeError` or `KeyError` for what `to_json` did not write."""
        identity, generation, offset = str(given["identity"]), int(given["generation"]), int(given["offset"])
        if "epoch" in given:
            return cls(identity, generation, offset, int(given["epoch"]))
        return cls(identity, generation, offset, 0, int(given["as_of_ms"]))

    def to_json(self) -> dict[str, Any]:
        """What every document has of a cursor: positions of consumers, offsets of groups, checkpoints of streams."""
        return {name: value for name, value in asdict(self).items() if value is not None}
