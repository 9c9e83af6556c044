"""Notes the appends of one commit that have keys, before it, so that a retry can tell whether it has landed (C75)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes
from lithify.errors import ConflictError, CoordinationError, LithifyError
from lithify.gateway.appends.keys import AppendKey
from lithify.model.names import TopicName
from lithify.model.topic.append_note import AppendNote, AppendRun, Placed
from lithify.model.topic.log import WrittenBatch
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.write.append_chain import Link, latest_link, with_chain
from lithify.service.write.append_joined import PartsRefusedError, Ranges


@dataclass(frozen=True, slots=True)
class Wanted:
    """A key to append with, and the note in whose place the append's is to be, if there was one."""

    key: AppendKey
    begun_ms: int
    seen: AppendNote | None = None


class NotedElsewhereError(LithifyError):
    """A part is not appended, as another attempt has noted its key; None if its note was removed meanwhile."""

    def __init__(self, note: AppendNote | None) -> None:
        super().__init__("another attempt has noted the key of an append")
        self.note = note


class KeyGuard:
    """`Guard` of one commit; `wanted` are the keys of its parts, by number, without those that have none."""

    def __init__(
        self, warehouse: Warehouse, notes: SqlAppendNotes | None, name: TopicName, wanted: Mapping[int, Wanted]
    ) -> None:
        self._warehouse, self._notes, self._name = warehouse, notes, name
        self._wanted = wanted
        self.run_id: str | None = None
        """The latest run that was noted."""
        self._seen = {one.key.key: one.seen for one in wanted.values() if one.seen is not None}
        self._noted: Mapping[int, AppendNote] = {}
        self._latest: Link | None = None

    def begun(self, state: TopicState) -> TopicState:
        return with_chain(self._warehouse, self._name) if self._wanted and latest_link(state) is None else state

    def before(self, newest: TopicState, run_id: str, ranges: Mapping[int, Ranges]) -> WrittenBatch | None:
        keyed = {number: self._wanted[number] for number in ranges if number in self._wanted}
        if not keyed:
            return None
        latest = latest_link(newest)
        if latest is None:
            raise ConflictError(
                f"{self._name}: more than 30 queries that write to the topic came between", hint="append again"
            )
        notes = {number: _note(one, latest, run_id, ranges[number]) for number, one in keyed.items()}
        # Unchanged ones are not written again. On the version of a commit whose answer was lost, which may still land,
        # nothing has changed: then no error of the database may say that nothing was appended.
        if (notes, latest) != (self._noted, self._latest):
            self._write(notes, latest, newest.version)
            self._noted, self._latest, self.run_id = notes, latest, run_id
        return latest.next(run_id).batch

    def _write(self, notes: Mapping[int, AppendNote], latest: Link, version: int) -> None:
        assert self._notes is not None  # or there would be no keys
        try:
            run = AppendRun(latest.run, version)
            there = self._notes.note(self._name, list(notes.values()), self._seen, run)
        except CoordinationError as error:
            raise PartsRefusedError(dict.fromkeys(notes, error)) from error
        lost: dict[int, LithifyError] = {}
        for number, note in notes.items():
            found = there.get(note.key)
            if found is not None and found.is_of(note) and found.version is None:
                self._seen[note.key] = note
            else:
                lost[number] = NotedElsewhereError(found)
        if lost:
            raise PartsRefusedError(lost)


def _note(wanted: Wanted, latest: Link, run_id: str, ranges: Ranges) -> AppendNote:
    places = tuple(Placed(r.partition, r.start_offset, r.records) for r in ranges)
    key = wanted.key
    return AppendNote(key.key, key.request, latest.chain, run_id, latest.run, places, wanted.begun_ms)
