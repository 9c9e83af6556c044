"""What a copy has at some offsets, to be compared (C72)."""

from __future__ import annotations

from lithify.model.names import TopicName, TopicReference
from lithify.model.record import Record
from lithify.model.sources.source import signs_of
from lithify.rules.lifecycle.copies.copy_continuation import EARLIER
from lithify.service.creation import create_topic
from lithify.service.read.signs import copied_signs
from lithify.service.write.append import append
from support.topics.memory_topic import a_warehouse


def test_each_partition_has_the_signs_of_its_own_range():
    warehouse, name = a_warehouse(), TopicName("default", "orders")
    create_topic(warehouse, TopicReference(name, "orders"), {}, 3)
    for n in range(4):
        append(warehouse, name, [Record(b"k", None if n == 2 else b"%d" % n, 5 + n, partition=p) for p in (0, 1)])
    found = copied_signs(warehouse, warehouse.store.load(name), {0: (1, 3), 1: (3, EARLIER), 2: (0, 0)})
    assert found == {
        0: {1: signs_of(6, b"k", b"1"), 2: signs_of(7, b"k", None)},
        1: {3: signs_of(8, b"k", b"3")},
        2: {},
    }
