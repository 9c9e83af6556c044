"""What all reports share: the field names are the JSON keys."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    """A value whose fields are those of its JSON object."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
