"""Finds out whether an append whose key is noted has landed, and sees to it that it does not land later (C75).

open note ─► has its run landed? ──yes──► noted
               may it still?     ──yes──► wait a little, then fence it
               neither           ──────► another attempt may replace the note
"""

from __future__ import annotations

from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes
from lithify.errors import ConflictError, UnknownOutcomeError
from lithify.model.names import TopicName
from lithify.model.topic.append_note import AppendNote, AppendRun
from lithify.ports.store import Warehouse
from lithify.service.write.append_chain import fence, latest_link

PATIENCE_MS = 2_000
"""A gateway that still works on the first attempt finishes it within this time, in most cases."""
LOOK_S = 0.1
LOOKS = 200
"""Of these, some 20 during `PATIENCE_MS`: each other one finds that the first attempt was planned again."""


class ChainGoneError(UnknownOutcomeError):
    """The run of a note is of a chain that the topic does not have: it does not land any more."""


def settled(warehouse: Warehouse, notes: SqlAppendNotes, topic: TopicName, note: AppendNote) -> AppendNote | None:
    """The note once its append has landed, or as it can be replaced, or None if it was removed.

    Raises `ChainGoneError` if nobody can know, `ConflictError` if others append all the time, `UnknownTopicError`,
    `CoordinationError`, or what `commit` raises.
    """
    begun_ms = warehouse.clock.monotonic_ms()
    current: AppendNote | None = note
    for _ in range(LOOKS):
        state = warehouse.store.load(topic)
        latest = latest_link(state)
        before, current = current, notes.find(topic, [note.key]).get(note.key)  # after the state: it may have landed
        if current is None or current.version is not None:
            return current
        if latest is not None and latest.chain == current.chain and latest.run == current.run:
            notes.landed(topic, AppendRun(latest.run, state.version))
        elif before is None or not current.is_of(before):
            continue  # it was planned again after the state was read
        elif latest is None or latest.chain != current.chain:
            raise _unknown(topic, note)
        elif latest.run != current.after:
            return current
        elif warehouse.clock.monotonic_ms() - begun_ms < PATIENCE_MS:
            warehouse.clock.sleep(LOOK_S)
        else:
            fence(warehouse, topic, latest)
    raise ConflictError(f"{topic}: other appends came between, {LOOKS} times in a row", hint="send it again")


def _unknown(topic: TopicName, note: AppendNote) -> ChainGoneError:
    return ChainGoneError(
        f"{topic}: it is unknown whether the append with the key {note.key!r} has landed: the topic was recreated, or "
        "more than 30 queries have written to it since",
        hint="read the newest records of the topic; then append what is missing, with a new key",
    )
