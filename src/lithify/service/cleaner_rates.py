"""The rates that `throttle` has stored for cleaners: what a cleaner starts with, and what `status` shows (C40)."""

from __future__ import annotations

from dataclasses import replace

from lithify.errors import WarehouseError
from lithify.ports.documents import DocumentKind, Documents
from lithify.ports.engine import RunLimits
from lithify.reports.rounds.rate_limits import RatesReport
from lithify.service.documents import cleaners_note, rates_note, rates_of, rates_report


def with_rates_of_cleaners(store: Documents, limits: RunLimits) -> RunLimits:
    """The limits of a cleaner that starts now: stored rates that last take the place of its own, and later ones too.

    If they cannot be read, its tasks read them: it never begins without a limit that is set.
    """
    if not _has_place(store):
        return limits
    try:
        note, stored = rates_note(store, None), rates_of(store, None)
    except WarehouseError:
        return replace(limits, notes=(cleaners_note(store, None),))
    if stored is not None and stored.lasts:
        rates = stored.rates
        limits = replace(limits, read_rate_bytes=rates.read_rate_bytes, write_rate_bytes=rates.write_rate_bytes)
    return replace(limits, notes=(note,))


def rates_of_cleaners(store: Documents) -> RatesReport | None:
    """The stored rates that cleaners keep to; None if there are none. Raises `WarehouseError`."""
    stored = rates_of(store, None) if _has_place(store) else None
    return rates_report(None, stored) if stored is not None and stored.lasts else None


def _has_place(store: Documents) -> bool:
    """Whether the warehouse has a folder for them: catalogs that give each topic a folder of its own have none."""
    try:
        return bool(store.document_path(None, DocumentKind.RATES))
    except WarehouseError:
        return False
