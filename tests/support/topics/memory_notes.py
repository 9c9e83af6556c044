"""Notes of appends with keys in memory: what `SqlAppendNotes` must do, one row at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from lithify.model.names import TopicName
from lithify.model.topic.append_note import CLOCKS_DIFFER_MS, AppendNote, AppendRun


class MemoryNotes:
    """The notes of one warehouse."""

    def __init__(self) -> None:
        self.rows: dict[tuple[TopicName, str], AppendNote] = {}
        self._floor_ms = 0
        self._lock = Lock()

    def find(self, topic: TopicName, keys: Collection[str]) -> Mapping[str, AppendNote]:
        return {key: self.rows[topic, key] for key in keys if (topic, key) in self.rows}

    def note(
        self, topic: TopicName, notes: Sequence[AppendNote], seen: Mapping[str, AppendNote], latest: AppendRun
    ) -> Mapping[str, AppendNote]:
        with self._lock:
            self._land(topic, latest)
            for note in notes:
                there, before = self.rows.get((topic, note.key)), seen.get(note.key)
                if before is None:
                    may_write = there is None and note.begun_ms >= self._floor_ms
                else:
                    may_write = there is not None and there.version is None and there.is_of(before)
                if may_write:
                    self.rows[topic, note.key] = note
            return self.find(topic, [note.key for note in notes])

    def landed(self, topic: TopicName, run: AppendRun) -> None:
        with self._lock:
            self._land(topic, run)

    def forget_before(self, time_ms: int) -> None:
        self._floor_ms = max(self._floor_ms, time_ms + CLOCKS_DIFFER_MS)

    def forgotten(self, limit: int) -> Sequence[tuple[TopicName, AppendNote]]:
        found = [(topic, note) for (topic, _), note in self.rows.items() if self._is_forgotten(note)]
        return sorted((one for one in found if one[1].version is None), key=lambda one: one[1].begun_ms)[:limit]

    def remove(self, topic: TopicName, note: AppendNote) -> None:
        with self._lock:
            there = self.rows.get((topic, note.key))
            if there is not None and there.version is None and there.is_of(note):
                del self.rows[topic, note.key]

    def remove_landed(self, limit: int) -> int:
        with self._lock:
            old = [key for key, note in self.rows.items() if self._is_forgotten(note) and note.version is not None]
            for key in sorted(old)[:limit]:
                del self.rows[key]
            return len(old[:limit])

    def _is_forgotten(self, note: AppendNote) -> bool:
        return note.begun_ms < self._floor_ms - CLOCKS_DIFFER_MS

    def _land(self, topic: TopicName, run: AppendRun) -> None:
        for (of, key), note in list(self.rows.items()):
            if of == topic and note.run == run.run and note.version is None:
                self.rows[of, key] = replace(note, version=run.version)
