"""Change tokens: what tells that a topic has changed without opening it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lithify.errors import UnknownTopicError
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName, parse_topic
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.state import NewTopic, TopicState
from lithify.service.documents import put_failures
from store.conformance.topics import NAMES
from support.store.builders import NOW_MS, ORDERS, Place, some_records


class ChangeTokenRules:
    """Rules on change tokens. A store whose catalog tells nothing says None for all of them."""

    def test_every_topic_has_one_whatever_its_name(self, place: Place) -> None:
        names = [parse_topic(text).name for text in NAMES]
        for name in names:
            place.store.create_topic(NewTopic(name, str(name), TopicSettings(), 1, NOW_MS))

        found = [name for name, _ in place.store.change_tokens()]

        assert sorted(found) == sorted(names)

    def test_a_token_is_another_one_after_every_commit_and_only_then(self, place: Place) -> None:
        state = place.create()
        place.create(TopicName("default", "other"))
        seen = [dict(place.store.change_tokens())]
        commits: tuple[Callable[[TopicState], TopicState], ...] = (
            lambda state: place.append(state, some_records("a", "b")),
            lambda state: place.change(state, generation=1),
            lambda state: place.round(state, keep=lambda record: record.key == b"b"),
            place.cover,
        )
        for commit in commits:
            state = commit(state)
            place.store.segments(place.store.load(ORDERS))
            put_failures(place.store, state, {0: LogFailure(1, 1, 2, 3, "e")})
            seen.append(dict(place.store.change_tokens()))
            assert seen[-1] == dict(place.store.change_tokens())

        assert len({tokens[TopicName("default", "other")] for tokens in seen}) == 1
        ours = [tokens[ORDERS] for tokens in seen]
        assert ours == [None] * len(seen) or len(set(ours)) == len(seen)

    def test_a_topic_that_is_made_again_has_another_one(self, place: Place) -> None:
        place.create()
        ((_, before),) = place.store.change_tokens()
        place.store.drop_topic(ORDERS)
        assert list(place.store.change_tokens()) == []

        place.create()

        ((name, after),) = place.store.change_tokens()
        assert name == ORDERS
        assert (before is None and after is None) or before != after

    def test_topics_may_come_and_go_while_they_are_gone_through(self, place: Place) -> None:
        names = [TopicName("default", f"t{n}") for n in range(4)]
        for name in names:
            place.create(name)
        tokens = place.store.change_tokens()
        first, _ = next(tokens)

        place.store.drop_topic(first)
        left = [name for name, _ in tokens]
        for name in left:
            place.append(place.store.load(name), some_records("a"))

        assert sorted([first, *left]) == names
        assert len(list(place.store.change_tokens())) == 3

    def test_a_topic_is_loaded_by_its_token_as_without_it(self, place: Place) -> None:
        names = [TopicName("default", f"t{n}") for n in range(3)]
        for name in names:
            place.append(place.create(name), some_records("a", "b"))
        place.round(place.store.load(names[0]), keep=lambda record: record.key == b"b")
        tokens = dict(place.store.change_tokens())
        for wanted in ([(name, tokens[name]) for name in names], [(name, None) for name in names]):
            found = {name: place.store.load_at(name, token) for name, token in wanted}
            assert found == {name: place.store.load(name) for name in names}
            assert [len(place.store.segments(state)) for state in found.values()] == [1, 1, 1]

    def test_a_topic_that_is_gone_since_its_token_was_taken_is_unknown(self, place: Place) -> None:
        gone = TopicName("default", "gone")
        place.create(gone)
        ((_, token),) = place.store.change_tokens()
        place.store.drop_topic(gone)

        with pytest.raises(UnknownTopicError, match="gone"):
            place.store.load_at(gone, token)

    def test_a_token_of_before_gives_that_version_or_the_newest(self, place: Place) -> None:
        before = place.create()
        ((name, token),) = place.store.change_tokens()
        after = place.append(before, some_records("a"))

        found = place.store.load_at(name, token)

        assert found in (before, after)
