"""The append path of a gateway: joined appends, and idempotency keys (C1, C60, C75).

    callers ─► turns ─► find keys ─► one commit, keys noted before it ─► note that it has landed ─► answers

A retry with the same key, to any gateway of the warehouse, gets the first answer if the append has landed. Else the
first attempt is settled, so that it cannot land any more, and the append is done anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any

from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes
from lithify.errors import ConflictError, CoordinationError, LithifyError, RefusedError, UnknownOutcomeError
from lithify.gateway.appends.key_guard import KeyGuard, NotedElsewhereError, Wanted
from lithify.gateway.appends.keys import AppendKey
from lithify.gateway.appends.settling import settled
from lithify.gateway.appends.turns import Limits, Turns
from lithify.model.names import TopicName
from lithify.model.topic.append_note import CLOCKS_DIFFER_MS, NOTES_KEPT_MS, AppendNote, AppendRun
from lithify.ports.store import Warehouse
from lithify.service.write.append import NOWHERE, AppendResult, OffsetRange
from lithify.service.write.append_joined import Part, append_joined

ATTEMPTS = 10
"""How often a retry finds that yet another attempt has noted its key."""

Outcome = AppendResult | LithifyError


@dataclass(frozen=True, slots=True)
class _Work:
    part: Part
    wanted: Wanted | None


@dataclass(frozen=True, slots=True)
class _Flight:
    """The append with a key that a thread of this gateway is at; others that have the same key wait for it."""

    request: str
    result: Future[AppendResult]


class Appends:
    """Appends to the topics of a warehouse. Any number of threads may use it, and any number of gateways.

    Without `notes`, where there is no database that gateways share, keys are refused.
    """

    def __init__(self, warehouse: Warehouse, notes: SqlAppendNotes | None, limits: Limits = Limits()) -> None:  # noqa: B008
        self._warehouse, self._notes = warehouse, notes
        self._turns: Turns[_Work, Outcome] = Turns(self._commit, limits, warehouse.clock.monotonic_ms)
        self._lock = Lock()
        self._flights: dict[tuple[TopicName, str], _Flight] = {}

    def append(
        self,
        topic: TopicName,
        batch: Any,
        key: AppendKey | None = None,
        expected_end: Mapping[int, int] = NOWHERE,
    ) -> AppendResult:
        """Appends records or an Arrow table as one atomic batch, and returns once that has landed.

        With a `key` that was used before, it appends nothing and returns what it returned then. Raises `BusyError`,
        `RefusedError` for a key that was used for another request or cannot be stored, `UnknownOutcomeError`, after
        which the same may be sent again with the same key, and what `append` raises.
        """
        part = Part(batch, expected_end)
        if key is None:
            return self._done(topic, _Work(part, None))
        if self._notes is None:
            raise RefusedError(
                f"{self._warehouse.store.where}: idempotency keys need an SQL database that gateways share",
                hint="start the gateway with --coordination-url, or append without a key; nothing was appended",
            )
        with self._lock:
            flight = self._flights.get((topic, key.key))
            if (first := flight is None) or flight is None:
                flight = self._flights[topic, key.key] = _Flight(key.request, Future())
        if not first:
            _check_same(topic, key, flight.request)
            return flight.result.result()
        return self._fly(topic, part, key, flight.result)

    def _fly(self, topic: TopicName, part: Part, key: AppendKey, result: Future[AppendResult]) -> AppendResult:
        """Appends for all that wait for `result` as well."""
        try:
            result.set_result(self._keyed(topic, part, key))
        except LithifyError as error:
            result.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._flights[topic, key.key]
            if not result.done():
                result.set_exception(UnknownOutcomeError(f"{topic}: the append was interrupted", hint="send it again"))
        return result.result()

    def _keyed(self, topic: TopicName, part: Part, key: AppendKey) -> AppendResult:
        assert self._notes is not None
        seen: AppendNote | None = None
        begun_ms = self._warehouse.clock.now_ms()
        for _ in range(ATTEMPTS):
            try:
                return self._done(topic, _Work(part, Wanted(key, begun_ms, seen)))
            except NotedElsewhereError as elsewhere:
                note = elsewhere.note
            if note is not None:
                _check_same(topic, key, note.request)
                seen = note if note.version is not None else settled(self._warehouse, self._notes, topic, note)
            if note is None or seen is None:
                raise _forgotten(topic, key, self._warehouse.clock.now_ms() - begun_ms)
            if seen.version is not None:
                return _result(topic, seen, seen.version)
        raise ConflictError(f"{topic}: others append with the key {key.key!r} all the time", hint="send it again")

    def _done(self, topic: TopicName, work: _Work) -> AppendResult:
        outcome = self._turns.done(topic, work, size_of(work.part.batch), first=bool(work.part.expected_end))
        if isinstance(outcome, LithifyError):
            raise outcome
        return outcome

    def _commit(self, topic: TopicName, works: Sequence[_Work]) -> Sequence[Outcome]:
        """One commit of what has no note yet; the outcomes of all."""
        outcomes: dict[int, Outcome] = dict(self._noted(topic, works))
        left = [number for number in range(len(works)) if number not in outcomes]
        wanted = {place: key for place, number in enumerate(left) if (key := works[number].wanted) is not None}
        guard = KeyGuard(self._warehouse, self._notes, topic, wanted)
        joined = append_joined(self._warehouse, topic, [works[number].part for number in left], guard)
        if guard.run_id is not None and self._notes is not None:
            results = (one for place in wanted if isinstance(one := joined[place], AppendResult))
            versions = [one.version for one in results if one.ranges]  # without records it may have had no run
            if versions:
                with suppress(CoordinationError):  # it has landed; the topic's state says so as well
                    self._notes.landed(topic, AppendRun(guard.run_id, versions[0]))
        outcomes |= dict(zip(left, joined, strict=True))
        return [outcomes[number] for number in range(len(works))]

    def _noted(self, topic: TopicName, works: Sequence[_Work]) -> Mapping[int, Outcome]:
        """The outcomes of those whose key has another note than the one that they have seen, or cannot be looked up."""
        keys = {work.wanted.key.key for work in works if work.wanted is not None}
        if not keys or self._notes is None:
            return {}
        keyed = [(number, work.wanted) for number, work in enumerate(works) if work.wanted is not None]
        try:
            notes = self._notes.find(topic, keys)
        except CoordinationError as error:
            return {number: error for number, _ in keyed}
        found = ((number, notes.get(wanted.key.key), wanted.seen) for number, wanted in keyed)
        return {number: NotedElsewhereError(note) for number, note, seen in found if note != seen}


def size_of(batch: Any) -> int:
    """The bytes of a batch, as they count for the bounds: of an Arrow table, or of records."""
    if hasattr(batch, "nbytes"):
        return int(batch.nbytes)
    return sum(64 + len(record.key or b"") + len(record.value or b"") for record in batch)


def _check_same(topic: TopicName, key: AppendKey, request: str) -> None:
    if key.request != request:
        raise RefusedError(
            f"{topic}: the idempotency key {key.key!r} was used for another request",
            hint="choose a new key for each append; nothing was appended",
        )


def _forgotten(topic: TopicName, key: AppendKey, waited_ms: int) -> LithifyError:
    if waited_ms < NOTES_KEPT_MS - 2 * CLOCKS_DIFFER_MS:
        return UnknownOutcomeError(
            f"{topic}: the clock of a gateway is wrong by hours: by it, keys of requests that come now were forgotten; "
            f"another attempt with the key {key.key!r} may have appended the same",
            hint="set the clocks; if one was ahead, stop all gateways, and delete the rows of lithify_append_floors in "
            "the lease database before they start again; until then append without keys",
        )
    return UnknownOutcomeError(
        f"{topic}: this request has waited for a day, by the clocks of the gateways, and its key {key.key!r} was "
        "forgotten: another attempt may have appended the same",
        hint="check the clocks; read the newest records, and append what is missing, with a new key",
    )


def _result(topic: TopicName, note: AppendNote, version: int) -> AppendResult:
    ranges = tuple(OffsetRange(p.partition, p.start, p.start + p.records, p.records) for p in note.places)
    return AppendResult(str(topic), version, ranges)
