"""Failures: which logs wait, beside the versions of a topic (C31)."""

from __future__ import annotations

from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse
from lithify.service.change.sweep import sweep
from lithify.service.documents import failures_of, put_failures
from support.fake_clock import FakeClock
from support.store.builders import ORDERS, Place, some_records

WAITING = LogFailure(3, 1_000, 2**43, 2**43 + 60_000, "s3://bucket/a ∅: the file is\nmissing")
STUCK = LogFailure(8, 0, 5, 0, "", quarantined=True)


class FailureRules:
    """Rules on failures."""

    def test_at_first_nothing_fails(self, place: Place) -> None:
        assert failures_of(place.store, place.create(partitions=3)) == {}

    def test_failures_come_back_as_they_were(self, place: Place) -> None:
        state = place.create(partitions=12)

        put_failures(place.store, state, {11: STUCK, 0: WAITING})

        assert failures_of(place.store, state) == {0: WAITING, 11: STUCK}
        assert failures_of(place.store, place.store.load(ORDERS)) == {0: WAITING, 11: STUCK}

    def test_what_is_stored_takes_the_place_of_what_was(self, place: Place) -> None:
        state = place.create(partitions=2)
        put_failures(place.store, state, {0: WAITING, 1: WAITING})

        put_failures(place.store, state, {1: STUCK})
        assert failures_of(place.store, state) == {1: STUCK}

        for _ in range(2):
            put_failures(place.store, state, {})
            assert failures_of(place.store, state) == {}

    def test_they_are_of_the_topic_and_not_of_a_version(self, place: Place) -> None:
        """C41: remembering a failure makes no version."""
        state = place.create()
        other = place.create(TopicName("default", "other"))
        put_failures(place.store, state, {0: WAITING})

        assert place.store.load(ORDERS) == state
        assert place.store.versions(ORDERS) == ()
        after = place.round(place.append(state, some_records("a")))
        assert failures_of(place.store, after) == failures_of(place.store, state) == {0: WAITING}
        assert failures_of(place.store, other) == {}

    def test_a_topic_that_is_made_again_has_none(self, place: Place) -> None:
        state = place.create()
        put_failures(place.store, state, {0: WAITING})
        place.store.drop_topic(ORDERS)

        assert failures_of(place.store, place.create()) == {}

    def test_a_sweep_leaves_them(self, place: Place) -> None:
        state = place.create()
        put_failures(place.store, state, {0: STUCK})

        sweep(Warehouse(place.store, place.files, FakeClock(2**43)), ORDERS, delete=True)

        assert failures_of(place.store, state) == {0: STUCK}
        assert {file.path for file in place.store.stored_files(state)} <= place.store.named_files(ORDERS).all
