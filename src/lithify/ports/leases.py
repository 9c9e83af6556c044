"""What several cleaners need to share work: leases in a database that all of them reach.

    lease      owner          beats
    orders     alpha/3f2a        17      alpha renews it: 18, 19, ...
    payments   beta/90c1         42      the same for long: whoever watched it may take it over

Nobody's clock is compared with anybody else's. A lease has a number that its owner makes grow; who
has seen it stand still for the time of a lease, by a clock of its own that only goes forward, may
take it, and the database lets exactly one of them. An owner never writes the same number twice, so
a lease that looks the same is the same: none was given back and taken again in between. Leases save
work and are never relied on for safety: that is the commit's (C44).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lithify.reports.cleaner_note import CleanerNote

NOTES_KEPT_MS = 86_400_000
"""Of cleaners that did not end in order. Clocks of machines may differ by minutes, not by a day."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as it stands in the database."""

    name: str
    owner: str
    beats: int


class Coordination(Protocol):
    """Where leases are. Every method raises `CoordinationError` where it cannot be reached."""

    @property
    def shared(self) -> bool:
        """Whether other processes see the same leases."""
        ...

    def leases(self) -> tuple[Lease, ...]:
        """All that there are: one for each topic that is worked on, and one for each cleaner."""
        ...

    def take(self, leases: Sequence[Lease], seen: Mapping[str, Lease]) -> frozenset[str]:
        """Puts each lease where the one `seen` of its name stands, or where there is none if none was seen.

        All are of one owner and have one number, which was written nowhere yet. Returns the names of
        those that were put there; the others are not as they were seen. After an error nobody knows
        whether they were, but it is all of them or none.
        """
        ...

    def renew(self, owner: str, beats: int) -> frozenset[str]:
        """Gives all leases of an owner this number, unless it is smaller than theirs; returns their names."""
        ...

    def release(self, owner: str, names: Collection[str]) -> None:
        """Takes away those of the leases that are still the owner's."""
        ...

    def remove(self, seen: Sequence[Lease]) -> None:
        """Takes away those that stand as they were seen, whoever's they are."""
        ...

    def put_note(self, note: CleanerNote) -> None:
        """Puts a cleaner's note in the place of its last one, and takes those away that are a day older."""
        ...

    def notes(self) -> tuple[CleanerNote, ...]: ...

    def drop_note(self, cleaner: str) -> None:
        """Takes the note of a cleaner away."""
        ...
