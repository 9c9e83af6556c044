"""The port of leases: several processes share work through a database that all of them reach.

    lease      owner          beats
    orders/0   alpha/3f2a        17      alpha renews it: 18, 19, ...
    orders/1   beta/90c1         42      unchanged for the time of a lease: another one may take it over

They are cleaners, which share logs, or members of a group, which share the partitions of a topic. Clocks of
two machines are never compared. A lease has a number that its owner increments. A process that
has seen it unchanged for the time of a lease, by its own monotonic clock, may take it over, and the
database lets exactly one of them succeed. An owner never writes the same number twice, so a lease that
looks unchanged is unchanged: it was not released and taken again in between. Leases only avoid double
work; safety is up to the commit, of a round (C44) or of a position (C58).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lithify.model.cleaner_note import CleanerNote

LEAST_LEASE_MS = 1_000
"""Shorter ones would be over while a database is busy."""
NOTES_TABLE = "lithify_cleaners"
"""The table of the notes of cleaners, where they share a database."""
NOTES_KEPT_MS = 86_400_000
"""Age at which notes of cleaners that did not end in order are removed. Clocks differ by minutes, not by a day."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as the database has it."""

    name: str
    owner: str
    beats: int


class Coordination(Protocol):
    """A store of leases. Every method raises `CoordinationError` when it cannot be reached."""

    @property
    def shared(self) -> bool:
        """Whether other processes see the same leases."""
        ...

    def leases(self, prefix: str = "") -> tuple[Lease, ...]:
        """The leases whose names begin with `prefix`, each of something that one process works on, or of its id."""
        ...

    def take(self, leases: Sequence[Lease], seen: Mapping[str, Lease]) -> frozenset[str]:
        """Replaces each lease by name if it is still as `seen`, or inserts it if none was seen and there is none.

        All have one owner and one new number. Returns the names of those that were written; the others
        have changed since. After an error it is unknown whether they were written, but it is all or none.
        """
        ...

    def renew(self, owner: str, beats: int) -> frozenset[str]:
        """Renews all leases of an owner with this number, unless theirs is larger; returns their names."""
        ...

    def release(self, owner: str, names: Collection[str]) -> None:
        """Deletes the leases that are still the owner's, among these."""
        ...

    def remove(self, seen: Sequence[Lease]) -> None:
        """Deletes leases of any owner that are still as they were seen."""
        ...

    def put_note(self, note: CleanerNote) -> None:
        """Replaces a cleaner's note, and deletes all notes that are a day older."""
        ...

    def notes(self) -> tuple[CleanerNote, ...]: ...

    def drop_note(self, cleaner: str) -> None:
        """Deletes the note of a cleaner."""
        ...
