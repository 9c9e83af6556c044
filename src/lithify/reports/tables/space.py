"""The space that a topic takes, in words."""

from __future__ import annotations

from lithify.model.settings.units import format_bytes, format_time, plural
from lithify.reports.space import Space


def space_line(space: Space | None) -> str:
    """`stored 1.20 GiB of data files: 310 MiB live, 850 MiB of 3 earlier versions until 2026-01-02 at least`.

    Nothing where all is live: the sizes of the logs say that already.
    """
    if space is None or space.stored_bytes == space.live_bytes:
        return ""
    parts = [f"{format_bytes(space.live_bytes)} live"]
    if space.view_bytes:
        parts.append(f"{format_bytes(space.view_bytes)} view")
    if space.earlier_versions_bytes != 0:
        parts.append(_earlier(space))
    whole = "" if space.stored_bytes is None else f"{format_bytes(space.stored_bytes)} of "
    return f"stored {whole}data files: {', '.join(parts)}"


def _earlier(space: Space) -> str:
    of, known = plural(space.earlier_versions, "earlier version"), space.earlier_versions_bytes
    size = "an unknown size" if known is None else format_bytes(known)
    until_ms = space.earlier_versions_until_ms
    return f"{size} of {of}" + ("" if until_ms is None else f" until {format_time(until_ms)[:19]}Z at least")
