"""What is said of entries of Pulsar that their producers wrote damaged, and that were kept whole (C74)."""

from __future__ import annotations

from collections.abc import Sequence

NAMED_AT_MOST = 10


def kept_whole(where: str, count: int, named: Sequence[str]) -> str:
    """`named` are the first ones, as LEDGER:ENTRY."""
    names = ", ".join(named[:NAMED_AT_MOST])
    more = f" and {count - NAMED_AT_MOST} more" if count > NAMED_AT_MOST else ""
    entries = "1 damaged entry was" if count == 1 else f"{count:,} damaged entries were"
    return f"{where}: {entries} kept whole: {names}{more}"
