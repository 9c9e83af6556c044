"""Rates that a run keeps to, and the document that changes them while it runs (C40).

    lithify throttle ─► <topic>/lithify/rates.json  {id, read_rate_bytes, write_rate_bytes}
                                   ▲
    a run notes the id at its start┘ and follows the document once its id is another one

Ids are compared, not times: a document of a topic that existed when a run began never slows it, however
clocks differ. Rates are bytes per second over the whole run; None is unlimited.

    lithify throttle, no topic  ─► .lithify/rates.json     {id, read_rate_bytes, write_rate_bytes, shared}
    cleaners, at heartbeats     ─► .lithify/cleaners.json  {cleaners}

A limit for cleaners lasts: those that start later follow it too. A shared one is for all of them together: the
tasks of each divide it by the number of running cleaners.
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
    """Rates for the runs that are running when it is stored, or for cleaners. Its id is unique."""

    id: str
    rates: Rates
    shared: bool | None = None
    """Whether all cleaners together keep to it, or each for itself; None for rounds, and before it could be said."""

    @property
    def lasts(self) -> bool:
        """Whether it also counts for cleaners that start later: "no limit" does not, so that they have their own."""
        return self.shared is not None and self.rates != Rates()

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self.rates)} | ({} if self.shared is None else {"shared": self.shared})

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RatesDocument:
        """Raises `ValueError` for any other document."""
        try:
            rates = Rates(content["read_rate_bytes"], content["write_rate_bytes"])
            document = RatesDocument(content["id"], rates, content.get("shared"))
        except (KeyError, TypeError) as error:
            raise ValueError(f"it is not a document of rates: {error}") from error
        for rate in (document.rates.read_rate_bytes, document.rates.write_rate_bytes):
            if rate is not None and (type(rate) is not int or rate <= 0):
                raise ValueError(f"{rate!r} is not a rate above zero")
        return document


@dataclass(frozen=True, slots=True)
class RatesNote:
    """The path of a document, and the id that it had when the run began; None if it counts whatever its id is."""

    path: str
    id: str | None
    cleaners_path: str | None = None
    """Where the number of running cleaners is, for the rates of cleaners; else None."""


def cleaners_from_json(content: Mapping[str, Any]) -> int:
    """The number of running cleaners. Raises `ValueError` for any other document."""
    cleaners = content.get("cleaners")
    if type(cleaners) is not int or cleaners < 1:
        raise ValueError(f"{cleaners!r} is not a number of cleaners")
    return cleaners
