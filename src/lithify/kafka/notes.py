"""What `publish` and `hydrate` say besides their results. The field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lithify.model.settings.units import plural
from lithify.reports.report import with_lags


@dataclass(frozen=True, slots=True)
class FollowedLog:
    """One partition: everything below `offset` is where it is to go; the log ends at `end_offset`."""

    partition: int
    offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        return max(0, self.end_offset - self.offset)


@dataclass(frozen=True, slots=True)
class KafkaNote:
    """That it waits for a broker, for example. `text` is for people.

    `topic` is that of the lake and `to` what its records go into; both are None in a note about the cluster.
    """

    event: str
    text: str
    topic: str | None = None
    to: str | None = None
    logs: tuple[FollowedLog, ...] = ()
    """How far it is, in notes that say so."""

    def to_json(self) -> dict[str, Any]:
        return with_lags(self)


TellNote = Callable[[KafkaNote], None]


def lag_text(logs: Sequence[FollowedLog]) -> str:
    """How far it is behind, in offsets: those of removed records and of transaction markers count."""
    return f"lag {plural(sum(log.lag for log in logs), 'offset')}"
