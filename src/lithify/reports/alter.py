"""What `topic alter` changed (C43). The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting, as text, before and after."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AlterReport:
    """What `topic alter` changed, settings under their dotted names."""

    topic: str
    version: int
    changed: bool
    settings: dict[str, SettingChange]
    partitions: int
    partitions_after: int
    logs_due: int
    """Logs that are due for a round once, since they have records and a setting changed (C43)."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
