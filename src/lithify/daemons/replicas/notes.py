"""What a daemon knows and notes of the progress of replicas.

    database ──► known ──► what a pass begins with, and when it may
    pass ──► known, and to be stored ──► database       all at once, every few seconds, only what has changed

Between two stores a topic may have had many passes; what is stored is the last of them. While the database cannot be
reached the notes are kept here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from threading import Lock

from lithify.model.names import TopicName
from lithify.model.replicas.replica_progress import TopicProgress
from lithify.ports.replicas import Replicas

Key = tuple[str, TopicName]
"""A topic of a replica."""


class ProgressNotes:
    """Notes of all topics of all replicas of one warehouse; several threads may use it."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._lock = Lock()
        self._stored: dict[Key, TopicProgress] = {}
        self._new: dict[Key, TopicProgress] = {}

    def refresh(self) -> None:
        """Reads what all daemons have noted. Raises `CoordinationError`."""
        progress = {(noted.replica, noted.topic): noted for noted in self._replicas.progress()}
        with self._lock:
            self._stored = progress

    def of(self, key: Key) -> TopicProgress | None:
        """What is known of a topic: this daemon's own note, or else any daemon's."""
        with self._lock:
            return self._new.get(key) or self._stored.get(key)

    def all(self) -> Mapping[Key, TopicProgress]:
        with self._lock:
            return {**self._stored, **self._new}

    def note(self, progress: Iterable[TopicProgress]) -> None:
        """To be stored by the next `store`, unless it says nothing new."""
        with self._lock:
            for noted in progress:
                key = (noted.replica, noted.topic)
                if _content(self._new.get(key) or self._stored.get(key)) != _content(noted):
                    self._new[key] = noted

    def store(self) -> None:
        """Stores what was noted since the last time. Raises `CoordinationError`, and keeps it for the next one."""
        with self._lock:
            new = dict(self._new)
        if not new:
            return
        self._replicas.note(list(new.values()))
        with self._lock:
            self._stored |= new
            self._new = {key: noted for key, noted in self._new.items() if noted is not new.get(key)}

    def forget(self, key: Key) -> None:
        """Forgets a topic that is not a replica any more. Raises `CoordinationError`."""
        with self._lock:
            self._new.pop(key, None)
            self._stored.pop(key, None)
        self._replicas.forget(key[0], [key[1]])


def _content(noted: TopicProgress | None) -> TopicProgress | None:
    """What of a note is worth a write."""
    return None if noted is None else replace(noted, updated_ms=0, daemon="")
