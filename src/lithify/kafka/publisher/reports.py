"""What a run of `publish` reports. The field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

PositionState = Literal["translated", "committed", "kept", "active"]
"""What became of a position: nothing, as none was to be committed; the group has it; it has another one in the target,
which it keeps; it has members, which must end first."""


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """One partition: this run published the lake's records at offsets [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class TranslatedPosition:
    """A group's position in one partition: `source_offset` is `offset` in the target.

    `again` is how many records the group may read again, at most; 0 if the position is exact. `found` is the offset
    that the group keeps.
    """

    group: str
    partition: int
    source_offset: int
    offset: int
    again: int
    state: PositionState
    found: int | None = None


@dataclass(frozen=True, slots=True)
class PublishReport:
    """The result of `publish`. `created`: it created the target, with `config`; `resumed`: it continued another run.

    `groups` are the positions that it translated.
    """

    topic: str
    version: int
    to: str
    created: bool
    config: Mapping[str, str]
    resumed: bool
    logs: tuple[PublishedLog, ...]
    duration_ms: int
    groups: tuple[TranslatedPosition, ...] = ()

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "records": self.records}
