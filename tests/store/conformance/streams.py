"""Streams: created, listed, changed, deleted, beside topics that are in them (C56)."""

from __future__ import annotations

import pytest

from lithify.errors import RefusedError, UnknownStreamError
from lithify.model.names import TopicName
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import NewTopic
from support.store.builders import NOW_MS, Place

STREAMS = ["eu", "eu.shop", "eu_shop", "EU", "mapr.%2Fapps%2Fevents", "s" * 249]
TOPIC = TopicName("eu", "orders")


class StreamRules:
    """Rules on streams."""

    def test_streams_are_kept_apart_with_their_attributes(self, place: Place) -> None:
        for n, stream in enumerate(STREAMS):
            place.store.create_stream(stream, {"ttl": str(n), "cleanup.policy": "compact,delete"})

        assert place.store.streams() == tuple(sorted(STREAMS))
        found = place.store.stream_attributes(STREAMS)
        assert found == {s: {"ttl": str(n), "cleanup.policy": "compact,delete"} for n, s in enumerate(STREAMS)}
        assert place.store.stream_attributes(["EU"]) == {"EU": found["EU"]}
        assert [place.store.stream_topics(stream) for stream in STREAMS] == [()] * len(STREAMS)

    def test_of_a_stream_that_was_only_given_topics_no_attributes_are_known(self, place: Place) -> None:
        place.create(TOPIC)
        assert place.store.streams() == ("eu",)
        assert place.store.stream_attributes(["eu", "asia"]) == {}
        assert place.store.stream_topics("eu") == (TOPIC,)
        with pytest.raises(RefusedError, match="eu: the stream exists"):
            place.store.create_stream("eu", {})

    def test_it_is_gone_with_its_last_topic_and_can_be_created(self, place: Place) -> None:
        place.create(TOPIC)
        place.store.drop_topic(TOPIC)
        assert place.store.streams() == ()
        place.store.create_stream("eu", {"ttl": "7"})
        assert place.store.stream_attributes(["eu"]) == {"eu": {"ttl": "7"}}

    def test_a_stream_without_attributes_is_known(self, place: Place) -> None:
        place.store.create_stream("eu", {})
        assert (place.store.streams(), place.store.stream_attributes(["eu"])) == (("eu",), {"eu": {}})
        with pytest.raises(RefusedError, match="exists already"):
            place.store.create_stream("eu", {"ttl": "1"})
        assert place.store.stream_attributes(["eu"]) == {"eu": {}}

    def test_a_stream_stays_with_its_attributes_when_topics_come_and_go(self, place: Place) -> None:
        place.store.create_stream("eu", {"ttl": "7"})
        place.create(TOPIC)
        place.create(TopicName("eu.shop", "orders"))
        assert place.store.stream_topics("eu") == (TOPIC,)
        place.store.drop_topic(TOPIC)
        assert place.store.streams() == ("eu", "eu.shop")
        assert place.store.stream_attributes(["eu"]) == {"eu": {"ttl": "7"}}

    def test_attributes_are_set_and_removed(self, place: Place) -> None:
        place.store.create_stream("eu", {"ttl": "7", "compact": "true"})
        place.store.change_stream("eu", {"ttl": "8", "autocreate": "true"}, ["compact", "compression"])
        assert place.store.stream_attributes(["eu"]) == {"eu": {"ttl": "8", "autocreate": "true"}}
        place.store.change_stream("eu", {}, ["ttl", "autocreate"])
        assert place.store.stream_attributes(["eu"]) == {"eu": {}}

    def test_a_stream_of_topics_alone_can_be_changed(self, place: Place) -> None:
        place.create(TOPIC)
        place.store.change_stream("eu", {"ttl": "8"}, [])
        assert place.store.stream_attributes(["eu"]) == {"eu": {"ttl": "8"}}

    def test_the_lock_of_edits_can_be_taken_again_and_is_not_that_of_a_topic(self, place: Place) -> None:
        place.create(TOPIC)
        for _ in range(2):
            with place.store.edit_lock("eu"), place.store.commit_lock(TOPIC):
                place.store.change_stream("eu", {"ttl": "8"}, [])

    def test_an_empty_stream_is_deleted(self, place: Place) -> None:
        place.store.create_stream("eu", {"ttl": "7"})
        place.create(TOPIC)
        with pytest.raises(RefusedError, match="eu: the stream is not empty"):
            place.store.drop_stream("eu")
        place.store.drop_topic(TOPIC)
        place.store.drop_stream("eu")
        assert (place.store.streams(), place.store.stream_attributes(["eu"])) == ((), {})
        place.store.create_stream("eu", {})

    def test_unknown_streams_are_refused_with_the_nearest_name(self, place: Place) -> None:
        place.store.create_stream("events", {})
        for call in (
            lambda: place.store.stream_topics("event"),
            lambda: place.store.change_stream("event", {"ttl": "1"}, []),
            lambda: place.store.drop_stream("event"),
        ):
            with pytest.raises(UnknownStreamError, match="did you mean events"):
                call()
        assert place.store.streams() == ("events",)

    def test_a_stream_below_another_is_another(self, place: Place) -> None:
        """PyIceberg takes the dots for levels, and the upper one as existing."""
        place.store.create_stream("eu.shop", {"ttl": "1"})
        with pytest.raises(UnknownStreamError):
            place.store.stream_topics("eu")
        place.store.create_stream("eu", {"ttl": "2"})
        place.store.drop_stream("eu.shop")
        assert place.store.stream_attributes(STREAMS) == {"eu": {"ttl": "2"}}

    def test_a_topic_knows_which_settings_are_its_own(self, place: Place) -> None:
        settings = settings_of({"versions.kept": 3, "null.key": "drop"})
        made = place.store.create_topic(NewTopic(TOPIC, "", settings, 1, NOW_MS, frozenset({"null.key"})))
        assert place.store.load(TOPIC) == made
        assert made.own_settings == {"null.key"}
        without = place.store.create_topic(NewTopic(TopicName("eu", "other"), "", settings, 1, NOW_MS))
        assert without.own_settings == {"null.key", "versions.kept"}

        edit = TopicEdit("run", NOW_MS, {0: made.log(0).with_run("run")}, own_settings=frozenset({"segment.bytes"}))
        after = place.store.commit(made, edit)
        assert (after.own_settings, after.settings) == ({"segment.bytes"}, settings)
        assert place.store.load(TOPIC) == after
        again = place.store.commit(after, TopicEdit("next", NOW_MS, {0: after.log(0).with_run("next")}))
        assert again.own_settings == {"segment.bytes"}
