"""The rates that bound rounds (C40): what `throttle` prints. The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.settings.units import format_bytes
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class RatesReport(Report):
    """The rates that `throttle` has stored for running rounds, or for cleaners."""

    topic: str | None
    """None for the cleaners of the whole warehouse."""
    id: str
    read_rate_bytes: int | None
    write_rate_bytes: int | None
    shared: bool = False
    """Whether they are for all cleaners together."""


def cleaners_of(rates: RatesReport) -> str:
    """Whom rates are for: each cleaner, or all of them."""
    return "all cleaners together" if rates.shared else "each cleaner"


def rates_text(rates: RatesReport) -> str:
    """`reads at most 19.1 MiB/s, writes without limit`, for one cleaner; `read`, `write` for several."""
    ending = "" if rates.shared or rates.topic is not None else "s"
    parts = (("read", rates.read_rate_bytes), ("write", rates.write_rate_bytes))
    return ", ".join(
        f"{verb}{ending} " + ("without limit" if rate is None else f"at most {format_bytes(rate)}/s")
        for verb, rate in parts
    )
