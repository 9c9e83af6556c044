"""Which feature a copy of a topic needs: one from which a round has really removed a record (C66)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lithify.errors import UnsupportedFormatError
from lithify.model.formats.features import (
    COMPACTED_LOGS,
    MASKS,
    check_known,
    features_after,
    features_of_copy,
    needs_compacted_logs,
)
from lithify.model.formats.warehouse import WarehouseFormat
from lithify.model.segment import Mask
from lithify.model.topic.edit import TopicEdit
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.retain import retain
from lithify.service.change.undo import undo
from lithify.service.documents import may_have_masks, put_warehouse_format
from support.builders import a_log
from support.topics.memory_topic import ORDERS, MemoryTopic

BESIDE = {"compaction_mode": "side-by-side"}
Change = Callable[[MemoryTopic], object]


def a_topic(text: str = "a=1 b=2 c=3", **config: object) -> MemoryTopic:
    topic = MemoryTopic(**config)
    topic.append(a_log(text).records)
    return topic


def needs(topic: MemoryTopic) -> bool:
    return needs_compacted_logs(topic.state)


@pytest.mark.parametrize("config", [{}, BESIDE], ids=["in place", "side by side"])
def test_a_copy_needs_it_once_a_round_has_removed_a_record(config: dict[str, object]) -> None:
    """C66: not by a setting, nor by a round that removed nothing."""
    topic = a_topic(**config)
    alter(topic.warehouse, ORDERS, {"min.cleanable.dirty.ratio": 0.1})
    topic.compact()
    assert not needs(topic)
    topic.append(a_log("a=4").records)
    assert not needs(topic)
    topic.compact()
    assert needs(topic)
    assert features_of_copy(topic.state) == (COMPACTED_LOGS,)
    undo(topic.warehouse, ORDERS)
    assert not needs(topic)
    assert features_of_copy(topic.state) == ()


def test_it_stays_so_until_what_lacks_records_is_gone() -> None:
    """C66: a round that removes nothing more does not bring them back; a dropped view was all that lacked them."""
    topic = a_topic("a=1 a=2", **BESIDE)
    for text in ("b=1", "c=1"):
        topic.compact()
        assert needs(topic)
        topic.append(a_log(text).records)
    uncompact(topic.warehouse, ORDERS)
    assert not needs(topic)


def test_what_rounds_in_place_have_removed_does_not_come_back_with_a_change_of_mode() -> None:
    topic = a_topic("a=1 a=2")
    topic.compact()
    alter(topic.warehouse, ORDERS, {"compaction.mode": "side-by-side"})
    assert needs(topic)
    topic.compact()
    uncompact(topic.warehouse, ORDERS)
    assert needs(topic)


CUTS: dict[str, Change] = {
    "retain": lambda t: retain(t.warehouse, ORDERS, now_ms=10**6),
    "delete-records": lambda t: delete_records(t.warehouse, ORDERS, 0, 2),
    "truncate": lambda t: truncate(t.warehouse, ORDERS, 0, 2),
    "a round after delete-records": lambda t: (delete_records(t.warehouse, ORDERS, 0, 2), t.compact()),
    "a round that drops whole segments": lambda t: t.compact(now_ms=10**6),
}


@pytest.mark.parametrize("cut", CUTS)
def test_what_is_cut_off_is_not_missing(cut: str) -> None:
    """C66: what retention, `delete-records` and truncations take is gone for readers of the source as well."""
    topic = a_topic("a=1 b=2 | c=3 d=4", cleanup_policy="compact,delete", retention_ms=1000, now_ms=100)
    before = topic.segments()
    CUTS[cut](topic)
    assert topic.segments() != before or topic.log().log_start_offset
    assert not needs(topic)


def test_values_that_a_round_drops_one_by_one_for_their_age_are_missing() -> None:
    topic = a_topic("a=1!0 b=2!5000 | c=3!5000", cleanup_policy="compact,delete", retention_ms=1000, now_ms=5000)
    topic.compact()
    assert needs(topic)


def test_a_topic_has_masks_from_the_first_one_on() -> None:
    """C66: kept versions have them when the newest has none any more; so has a copy, and it has had them."""
    topic = a_topic()
    whole = topic.segments()[0]
    masked = replace(whole, records=2, mask=Mask("mask", 100, 1))
    edit = TopicEdit("run", 0, {})
    assert features_after((), replace(edit, add=(whole,), remove=(masked,))) == ()
    assert features_after((), replace(edit, add=(masked,))) == (MASKS,)
    assert features_after((COMPACTED_LOGS,), replace(edit, view_add=(masked,))) == (COMPACTED_LOGS, MASKS)
    assert features_after((COMPACTED_LOGS, MASKS), replace(edit, features=())) == (MASKS,)
    assert features_of_copy(replace(topic.state, features=(MASKS,))) == (MASKS,)


def test_rounds_write_masks_only_where_every_program_knows_them() -> None:
    """C66: a warehouse of an earlier version has none before an upgrade, but a topic that has some may have more."""
    topic = a_topic()
    store = topic.warehouse.store
    for features, masks in (([], False), ([COMPACTED_LOGS], False), ([COMPACTED_LOGS, MASKS], True)):
        put_warehouse_format(store, WarehouseFormat(4, frozenset(features)))
        assert may_have_masks(store, topic.state) == masks
        assert may_have_masks(store, replace(topic.state, features=(MASKS,)))


def test_a_feature_that_is_not_known_is_named() -> None:
    check_known("orders", [COMPACTED_LOGS])
    with pytest.raises(
        UnsupportedFormatError, match="orders: it has the feature fast-logs, which this version does not support"
    ):
        check_known("orders", ["fast-logs", COMPACTED_LOGS])
