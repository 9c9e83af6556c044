"""Rates that a run keeps to, and the document that changes them while it runs (C40).

    lithify throttle ─► <topic>/lithify/rates.json  {id, read_rate_bytes, write_rate_bytes}
                                   ▲
    a run notes the id at its start┘ and follows the document once its id is another one

Ids are compared, not times: a document that existed when a run began never slows it, however
clocks differ. Rates are bytes per second over the whole run; None is no limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes per second that all tasks of a run together may read and write."""

    read_rate_bytes: int | None = None
    write_rate_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RatesDocument:
    """Rates for the runs that are running when it is stored. Its id is unique."""

    id: str
    rates: Rates

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self.rates)}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RatesDocument:
        """Raises `ValueError` for any other document."""
        try:
            found = RatesDocument(content["id"], Rates(content["read_rate_bytes"], content["write_rate_bytes"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no document of rates: {error}") from error
        for rate in (found.rates.read_rate_bytes, found.rates.write_rate_bytes):
            if rate is not None and (type(rate) is not int or rate <= 0):
                raise ValueError(f"{rate!r} is not a rate above zero")
        return found


@dataclass(frozen=True, slots=True)
class RatesNote:
    """The path of a topic's document, and its id when the run began; None if there was none."""

    path: str
    id: str | None
