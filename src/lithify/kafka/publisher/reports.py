"""What a run of `publish` reports. The field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """One partition: this run published the lake's records at offsets [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class PublishReport:
    """The result of `publish`. `created`: it created the target, with `config`; `resumed`: it continued another run."""

    topic: str
    version: int
    to: str
    created: bool
    config: Mapping[str, str]
    resumed: bool
    logs: tuple[PublishedLog, ...]
    duration_ms: int

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "records": self.records}
