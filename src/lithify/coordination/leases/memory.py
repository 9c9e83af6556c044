"""Leases in the memory of one process: a short specification of `Coordination`.

A single cleaner without a database uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Lock

from lithify.model.cleaner_note import CleanerNote
from lithify.ports.leases import NOTES_KEPT_MS, Lease


class MemoryCoordination:
    """`Coordination` for threads of one process."""

    shared = False

    def __init__(self, lock: AbstractContextManager[object] | None = None) -> None:
        self._leases: dict[str, Lease] = {}
        self._notes: dict[str, CleanerNote] = {}
        self._lock = Lock() if lock is None else lock

    def leases(self, prefix: str = "") -> tuple[Lease, ...]:
        with self._lock:
            return tuple(lease for name, lease in self._leases.items() if name.startswith(prefix))

    def take(self, leases: Sequence[Lease], seen: Mapping[str, Lease]) -> frozenset[str]:
        with self._lock:
            free = {lease.name: lease for lease in leases if self._leases.get(lease.name) == seen.get(lease.name)}
            self._leases |= free
            return frozenset(free)

    def held(self, owner: str, names: Collection[str]) -> frozenset[str]:
        """The leases that are the owner's, among these."""
        with self._lock:
            return frozenset(n for n in names if n in self._leases and self._leases[n].owner == owner)

    def renew(self, owner: str, beats: int) -> frozenset[str]:
        with self._lock:
            ours = [lease for lease in self._leases.values() if lease.owner == owner]
            for lease in ours:
                self._leases[lease.name] = replace(lease, beats=max(beats, lease.beats))
            return frozenset(lease.name for lease in ours)

    def release(self, owner: str, names: Collection[str]) -> None:
        with self._lock:
            for name in names:
                if name in self._leases and self._leases[name].owner == owner:
                    del self._leases[name]

    def remove(self, seen: Sequence[Lease]) -> None:
        with self._lock:
            for lease in seen:
                if self._leases.get(lease.name) == lease:
                    del self._leases[lease.name]

    def put_note(self, note: CleanerNote) -> None:
        with self._lock:
            last_ms = note.last_ms - NOTES_KEPT_MS
            self._notes = {name: kept for name, kept in self._notes.items() if kept.last_ms >= last_ms}
            self._notes[note.cleaner] = note

    def notes(self) -> tuple[CleanerNote, ...]:
        with self._lock:
            return tuple(self._notes.values())

    def drop_note(self, cleaner: str) -> None:
        with self._lock:
            self._notes.pop(cleaner, None)
