"""Topics: created, listed, loaded, deleted, recreated."""

from __future__ import annotations

import re

import pytest

from lithify.errors import TopicExistsError, UnknownTopicError
from lithify.model.names import TopicName, parse_topic
from lithify.model.settings.topic_settings import TopicSettings, settings_of
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LogState
from lithify.model.topic.state import NewTopic
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.service.change.expire import expire_versions
from lithify.service.documents import put_report, rates_note, reports_of
from support.store.builders import NOW_MS, ORDERS, Place, a_report, some_records

NAMES = [
    "orders",
    "Orders",
    "sales.eu/orders.v2",
    "sales.eu/orders-v2",
    "sales_eu/orders_v2",
    "catalog.db/catalog.db",
    "s" * 249 + "/" + "t" * 249,
    "persistent://tenant/name.space/a b/c%20d",
    "/mapr/path/stream:topic",
    "0/1",
]


class TopicRules:
    """Rules on topics as a whole."""

    def test_a_new_topic_is_empty(self, place: Place) -> None:
        settings = settings_of({"segment.bytes": "1MiB", "min.cleanable.dirty.ratio": "0.25", "versions.kept": 3})

        made = place.store.create_topic(NewTopic(ORDERS, "the original", settings, 3, NOW_MS))

        assert (made.name, made.original_name, made.created_ms) == (ORDERS, "the original", NOW_MS)
        assert made.settings == settings
        assert made.logs == (LogState(0), LogState(1), LogState(2))
        assert place.store.load(ORDERS) == made
        assert place.store.segments(made) == ()
        assert place.store.versions(ORDERS) == ()
        assert list(reports_of(place.store, made)) == []

    def test_a_new_warehouse_has_nothing_and_looking_into_it_makes_nothing(self, place: Place) -> None:
        for _ in range(2):
            assert place.store.topics() == ()
            assert list(place.store.change_tokens()) == []
            assert rates_note(place.store, None).id is None
        place.create()

    def test_topics_are_listed_in_order_and_kept_apart(self, place: Place) -> None:
        references = [parse_topic(text) for text in NAMES]
        for n, reference in enumerate(references):
            state = place.store.create_topic(NewTopic(reference.name, reference.original, TopicSettings(), 1, n))
            place.append(state, some_records(f"key {n}"))

        assert place.store.topics() == tuple(sorted(reference.name for reference in references))
        for n, reference in enumerate(references):
            state = place.store.load(reference.name)
            assert (state.name, state.original_name, state.created_ms) == (reference.name, reference.original, n)
            assert [record.key for record in place.records(state)] == [f"key {n}".encode()]
        assert len({place.store.load(reference.name).location for reference in references}) == len(NAMES)

    def test_an_unknown_topic_is_refused(self, place: Place) -> None:
        other = place.create(TopicName("default", "other"))
        for call in (
            lambda: place.store.load(ORDERS),
            lambda: place.store.load_version(ORDERS, 1),
            lambda: place.store.versions(ORDERS),
            lambda: place.store.drop_topic(ORDERS),
            lambda: expire_versions(Warehouse(place.store, place.files, place.clock), ORDERS),
        ):
            with pytest.raises(UnknownTopicError, match=re.escape(f"orders: no such topic in {place.store.where}")):
                call()
        assert place.store.topics() == (other.name,)

    def test_an_existing_topic_is_not_made_again(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))

        with pytest.raises(TopicExistsError, match="orders"):
            place.create(partitions=7)

        assert place.store.load(ORDERS) == state
        assert len(place.records(state)) == 1

    def test_a_deleted_topic_is_gone_with_its_files(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))
        (segment,) = place.store.segments(state)
        assert place.files.missing([segment.path]) == ()

        place.store.drop_topic(ORDERS)

        assert place.store.topics() == ()
        assert place.files.missing([segment.path]) == (segment.path,)
        with pytest.raises(UnknownTopicError):
            place.store.load(ORDERS)

    def test_a_topic_of_any_name_is_deleted_alone(self, place: Place) -> None:
        names = [parse_topic(text).name for text in NAMES]
        for name in names:
            place.store.create_topic(NewTopic(name, str(name), TopicSettings(), 1, NOW_MS))

        for gone, name in enumerate(names, 1):
            place.store.drop_topic(name)
            assert place.store.topics() == tuple(sorted(names[gone:]))

    def test_a_topic_made_again_starts_afresh(self, place: Place) -> None:
        old = place.append(place.create(), some_records("a", "b"))
        put_report(place.store, old, "report1", a_report(1))
        old = place.round(old, report_id="report1")
        place.store.drop_topic(ORDERS)

        new = place.create()

        assert new.identity != old.identity
        assert new.location != old.location
        assert new.logs == (LogState(0),)
        assert place.store.segments(new) == ()
        assert place.store.versions(ORDERS) == ()
        assert list(reports_of(place.store, new)) == []

    def test_an_edit_of_a_deleted_topic_meets_neither_it_nor_its_successor(self, place: Place) -> None:
        old = place.create()
        place.store.drop_topic(ORDERS)
        edit = TopicEdit("late", NOW_MS, {0: LogState(0, log_end_offset=5)})

        with pytest.raises(StaleVersionError):
            place.store.commit(old, edit)
        new = place.create()
        with pytest.raises(StaleVersionError):
            place.store.commit(old, edit)

        assert place.store.load(ORDERS) == new
