"""The document of rates: what a run notes of it when it begins, and finds later (C40)."""

from __future__ import annotations

from lithify.model.settings.rates import Rates, RatesDocument
from lithify.service.documents import put_rates, rates_note
from support.store.builders import Place


class RatesRules:
    """Rules on rates."""

    def test_there_are_none_at_first(self, place: Place) -> None:
        assert rates_note(place.store, place.create()).id is None

    def test_the_newest_are_noted_and_stand_where_they_stood(self, place: Place) -> None:
        state = place.create()
        before = rates_note(place.store, state)
        put_rates(place.store, state, RatesDocument("first", Rates(1, 2)))
        put_rates(place.store, state, RatesDocument("second", Rates(None, 2)))

        after = rates_note(place.store, state)

        assert (after.path, after.id) == (before.path, "second")

    def test_they_are_no_version(self, place: Place) -> None:
        state = place.create()
        put_rates(place.store, state, RatesDocument("r", Rates()))
        assert place.store.load(state.name).version == state.version
        assert place.store.versions(state.name) == ()

    def test_a_topic_that_is_made_again_has_none(self, place: Place) -> None:
        state = place.create()
        put_rates(place.store, state, RatesDocument("r", Rates()))
        place.store.drop_topic(state.name)
        assert rates_note(place.store, place.create()).id is None

    def test_those_of_the_warehouse_are_beside_those_of_topics(self, place: Place) -> None:
        state = place.create()
        before = rates_note(place.store, None)
        assert before.id is None

        put_rates(place.store, None, RatesDocument("all", Rates(1, None)))
        assert rates_note(place.store, state).id is None
        put_rates(place.store, state, RatesDocument("one", Rates(2, None)))
        put_rates(place.store, None, RatesDocument("all again", Rates()))

        after = rates_note(place.store, None)
        assert (after.path, after.id) == (before.path, "all again")
        assert rates_note(place.store, state).id == "one"
        assert place.store.load(state.name) == state

    def test_those_of_the_warehouse_outlive_its_topics(self, place: Place) -> None:
        state = place.create()
        put_rates(place.store, None, RatesDocument("r", Rates()))
        place.store.drop_topic(state.name)
        assert rates_note(place.store, None).id == "r"

    def test_looking_for_those_of_an_empty_warehouse_finds_none_and_topics_can_still_be_made(
        self, place: Place
    ) -> None:
        assert rates_note(place.store, None).id is None
        assert place.store.topics() == ()
        place.create()
