"""The document of rates: what a run notes of it when it begins, and finds later (C40)."""

from __future__ import annotations

from lithify.model.settings.rates import Rates, RatesDocument
from support.store.builders import Place


class RatesRules:
    """Rules on rates."""

    def test_there_are_none_at_first(self, place: Place) -> None:
        assert place.store.rates_note(place.create()).id is None

    def test_the_newest_are_noted_and_stand_where_they_stood(self, place: Place) -> None:
        state = place.create()
        before = place.store.rates_note(state)
        place.store.put_rates(state, RatesDocument("first", Rates(1, 2)).to_json())
        place.store.put_rates(state, RatesDocument("second", Rates(None, 2)).to_json())

        after = place.store.rates_note(state)

        assert (after.path, after.id) == (before.path, "second")

    def test_they_are_no_version(self, place: Place) -> None:
        state = place.create()
        place.store.put_rates(state, RatesDocument("r", Rates()).to_json())
        assert place.store.load(state.name).version == state.version
        assert place.store.versions(state.name) == ()

    def test_a_topic_that_is_made_again_has_none(self, place: Place) -> None:
        state = place.create()
        place.store.put_rates(state, RatesDocument("r", Rates()).to_json())
        place.store.drop_topic(state.name)
        assert place.store.rates_note(place.create()).id is None

    def test_those_of_the_warehouse_are_beside_those_of_topics(self, place: Place) -> None:
        state = place.create()
        before = place.store.rates_note(None)
        assert before.id is None

        place.store.put_rates(None, RatesDocument("all", Rates(1, None)).to_json())
        assert place.store.rates_note(state).id is None
        place.store.put_rates(state, RatesDocument("one", Rates(2, None)).to_json())
        place.store.put_rates(None, RatesDocument("all again", Rates()).to_json())

        after = place.store.rates_note(None)
        assert (after.path, after.id) == (before.path, "all again")
        assert place.store.rates_note(state).id == "one"
        assert place.store.load(state.name) == state

    def test_those_of_the_warehouse_outlive_its_topics(self, place: Place) -> None:
        state = place.create()
        place.store.put_rates(None, RatesDocument("r", Rates()).to_json())
        place.store.drop_topic(state.name)
        assert place.store.rates_note(None).id == "r"

    def test_looking_for_those_of_an_empty_warehouse_finds_none_and_topics_can_still_be_made(
        self, place: Place
    ) -> None:
        assert place.store.rates_note(None).id is None
        assert place.store.topics() == ()
        place.create()
