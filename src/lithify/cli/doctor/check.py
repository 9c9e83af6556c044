"""What one check of `lithify doctor` says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `hint` has what to do if it is not `ok`; what is `optional` is missed by the verbs that it names."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    optional: bool = False
