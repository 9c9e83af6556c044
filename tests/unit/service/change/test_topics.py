"""Topics are created and grow by the same rules through every face."""

from __future__ import annotations

import pytest

from lithify.errors import InvalidNameError, RefusedError
from lithify.model.names import TopicName, TopicReference, parse_topic
from lithify.rules.lifecycle.admission import MAX_PARTITIONS
from lithify.service.change.alter import alter
from lithify.service.creation import create_topic
from support.topics.memory_topic import a_warehouse


@pytest.fixture
def warehouse():
    return a_warehouse()


@pytest.mark.parametrize("partitions", [-1, 0, MAX_PARTITIONS + 1])
def test_a_topic_has_a_bounded_number_of_partitions(warehouse, partitions):
    with pytest.raises(RefusedError, match=f"partitions={partitions}: a topic has 1 to {MAX_PARTITIONS}"):
        create_topic(warehouse, parse_topic("orders"), {}, partitions)
    assert warehouse.store.topics() == ()


def test_no_topic_grows_beyond_it(warehouse):
    name = create_topic(warehouse, parse_topic("orders"), {}, 1).name
    with pytest.raises(RefusedError, match=f"a topic has 1 to {MAX_PARTITIONS}"):
        alter(warehouse, name, {}, partitions=MAX_PARTITIONS + 1)
    assert warehouse.store.load(name).version == 1


def test_a_partition_is_no_topic(warehouse):
    with pytest.raises(RefusedError, match="only a whole topic can be created"):
        create_topic(warehouse, parse_topic("persistent://t/n/orders-partition-3"), {}, 1)


def test_a_name_that_cannot_be_printed_is_refused(warehouse):
    with pytest.raises(InvalidNameError, match="cannot be printed"):
        create_topic(warehouse, TopicReference(TopicName("mapr.a", "b"), "/a:\n"), {}, 1)
