"""What a daemon knows and notes: the last of many notes, written seldom, kept while there is no database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.daemons.replicas.notes import ProgressNotes
from lithify.errors import CoordinationError
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from support.store.memory_replicas import MemoryReplicas

ORDERS = TopicName("default", "orders")
NOTED = TopicProgress("r", ORDERS, ReplicaStanding.REPLICATING, 5, "d", version=1)


class Counted(MemoryReplicas):
    """Counts what is written, and may be away."""

    def __init__(self) -> None:
        super().__init__("file:///lake")
        self.add(ReplicaDefinition("r", "file:///lake", "default", "orders", "/b", "file:///b", None, False, 1))
        self.writes, self.is_away = 0, False

    def note(self, progress) -> None:
        if self.is_away:
            raise CoordinationError("the database is down")
        self.writes += len(progress)
        super().note(progress)


def test_the_last_of_many_notes_is_stored() -> None:
    replicas = Counted()
    notes = ProgressNotes(replicas)
    for version in range(100):
        notes.note([replace(NOTED, version=version)])
    assert notes.of(("r", ORDERS)) == replace(NOTED, version=99)
    notes.store()
    notes.store()
    assert (replicas.writes, replicas.progress()) == (1, (replace(NOTED, version=99),))


def test_a_note_that_says_nothing_new_is_not_stored() -> None:
    replicas = Counted()
    notes = ProgressNotes(replicas)
    notes.note([NOTED])
    notes.store()
    notes.note([replace(NOTED, updated_ms=9, daemon="another")])
    notes.store()
    assert replicas.writes == 1


def test_notes_are_kept_while_the_database_is_away() -> None:
    replicas = Counted()
    notes = ProgressNotes(replicas)
    notes.note([NOTED])
    replicas.is_away = True
    with pytest.raises(CoordinationError):
        notes.store()
    notes.note([replace(NOTED, version=2)])
    replicas.is_away = False
    notes.refresh()
    assert notes.of(("r", ORDERS)) == replace(NOTED, version=2)
    notes.store()
    assert replicas.progress() == (replace(NOTED, version=2),)


def test_what_others_noted_is_known_after_a_refresh() -> None:
    replicas = Counted()
    ours, theirs = ProgressNotes(replicas), ProgressNotes(replicas)
    theirs.note([NOTED])
    theirs.store()
    assert ours.of(("r", ORDERS)) is None
    ours.refresh()
    assert ours.of(("r", ORDERS)) == NOTED and dict(ours.all()) == {("r", ORDERS): NOTED}
    ours.forget(("r", ORDERS))
    assert replicas.progress() == ()
