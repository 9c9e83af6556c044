"""Replicas: what a topic says that it is a copy of, and copies of files (C63 to C65)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lithify.errors import DamagedError
from lithify.model.replicas.file_names import origin
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.sources.origin import KAFKA, OWN, PROMOTED, CopyOf
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import NewTopic, TopicState
from support.store.builders import NOW_MS, ORDERS, Place, some_records

SAYS = ReplicaOf("s3://lake/warehouse", "6c1d", 0, ("ab", "cd"), 1)


class ReplicaRules:
    """Rules on topics that are replicas."""

    def a_replica(self, place: Place) -> TopicState:
        return place.store.create_topic(NewTopic(ORDERS, "orders", TopicSettings(), 1, NOW_MS, None, SAYS))

    def edited(self, place: Place, state: TopicState, verb: Verb, says: ReplicaOf | None = None) -> TopicState:
        return place.store.commit(state, TopicEdit(place.clock.new_id(), NOW_MS, {}, verb=verb, replica=says))

    def test_a_topic_of_its_own_says_nothing(self, place: Place) -> None:
        assert place.append(place.create(), some_records("a")).replica is None

    def test_a_copy_of_a_kafka_topic_says_so_until_it_is_promoted_c70(self, place: Place) -> None:
        state = place.create()
        assert state.origin == OWN
        for said in (CopyOf(KAFKA, "orders"), PROMOTED):
            edit = TopicEdit(place.clock.new_id(), NOW_MS, {}, origin=said)
            state = place.append(place.store.commit(state, edit), some_records("a"))
            assert (state.origin, place.store.load(ORDERS).origin) == (said, said)

    def test_every_commit_states_the_version_that_it_makes_c64(self, place: Place) -> None:
        state = self.a_replica(place)
        assert state.replica == SAYS
        for verb, says in (
            (Verb.SWEEP, None),
            (Verb.REPLICATE, replace(SAYS, version=7, source="elsewhere")),
            (Verb.EXPIRE, None),
        ):
            before = state
            state = self.edited(place, state, verb, says)
            assert state.replica == replace(says or before.replica or SAYS, written_at=state.version)
            assert place.store.load(ORDERS).replica == state.replica

    def test_a_promoted_replica_says_nothing_from_then_on_c64(self, place: Place) -> None:
        state = self.edited(place, self.a_replica(place), Verb.PROMOTE)
        assert state.replica is None
        assert place.append(state, some_records("a")).replica is None
        assert place.store.load(ORDERS).replica is None

    def test_what_another_program_left_stays_c64(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        state = self.a_replica(place)
        with monkeypatch.context() as earlier:
            earlier.setattr(TopicEdit, "replica_after", lambda _edit, before, _base, _version: before)
            state = self.edited(place, state, Verb.APPEND)
        assert state.replica == SAYS
        assert self.edited(place, state, Verb.SWEEP).replica == SAYS

    def test_a_kept_version_says_what_it_said_then_c63(self, place: Place) -> None:
        state = place.append(self.a_replica(place), some_records("a"))
        before = self.edited(place, state, Verb.REPLICATE, replace(SAYS, version=3))
        place.round(before)
        (kept,) = place.store.versions(ORDERS)
        assert place.store.load_version(ORDERS, kept.version).replica == before.replica

    def test_a_copy_of_a_file_is_read_as_the_file_is_c65(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a", "b", "c"))
        (segment,) = place.store.segments(state)
        copy = place.files.copy(state, segment, place.files.pieces(segment), "copyrun")
        assert origin(copy.path) == origin(segment.path)
        assert replace(copy, path=segment.path) == segment
        assert place.records_of([copy]) == place.records_of([segment])
        assert place.files.findings(copy) == ()
        assert b"".join(place.files.pieces(copy)) == b"".join(place.files.checked_pieces(segment))
        again = place.files.copy(state, copy, place.files.pieces(copy), "second")
        assert origin(again.path) == origin(segment.path)
        assert place.records_of([again]) == place.records_of([segment])
        (stored,) = (file for file in place.store.stored_files(state) if file.path == again.path)
        assert (stored.run_id, stored.size_bytes) == ("second", segment.size_bytes)

    def test_a_file_that_is_not_what_its_metadata_says_is_found_c65(self, place: Place) -> None:
        (segment,) = place.store.segments(place.append(place.create(), some_records("a", "b", "c")))
        assert place.files.findings(segment) == ()
        assert place.files.findings(replace(segment, records=2)) != ()
        with pytest.raises(DamagedError, match=re.escape(segment.path)):
            list(place.files.checked_pieces(replace(segment, null_keys=2)))
        place.lose(segment)
        (finding,) = place.files.findings(segment)
        assert (finding.kind, finding.path) == ("file_missing", segment.path)
        with pytest.raises(DamagedError, match="missing"):
            list(place.files.pieces(segment))
        with pytest.raises(DamagedError, match="missing"):
            list(place.files.checked_pieces(segment))
