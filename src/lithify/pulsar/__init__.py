"""Pulsar's own formats and rules: entries as brokers store them, and what a compaction leaves of them.

    entries of a topic ──► format: one entry        ──► compaction: the rules, and `compact_entries` in plain Python
                      └──► columns: many, as Arrow  ──► the same rules on Spark

In these rooms Pulsar's words are used: message, entry, ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lithify.pulsar.compaction.reference import compact_entries as compact_entries

__all__ = ["compact_entries"]


def __getattr__(name: str) -> object:
    """Public names, imported when they are first used: the package alone imports no library."""
    if name == "compact_entries":
        from lithify.pulsar.compaction.reference import compact_entries

        return compact_entries
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
