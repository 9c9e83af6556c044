"""The space that a topic takes: what its newest version names, and what only earlier ones do (C6).

The field names are the JSON keys. Bytes are compressed sizes of data files, each file counted once.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class Space(Report):
    """What metadata tells of it. Files that no version names are not in it: only `sweep` lists the folder."""

    stored_bytes: int | None
    """All of the following; null if the size of earlier versions is."""
    live_bytes: int
    """Of the files that the logs name now; side by side, of the backlogs."""
    view_bytes: int
    """Of the files that only the compacted views name: a file of both is live."""
    earlier_versions: int
    """How many are kept."""
    earlier_versions_bytes: int | None
    """Of the files that only these name; null while one of them is kept that an earlier Lithify closed."""
    earlier_versions_until_ms: int | None
    """The last of those files stay at least until then; null if there are none."""
