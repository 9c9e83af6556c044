"""Copies of Kafka topics take only what an ingest copies, until they are promoted (C70)."""

from __future__ import annotations

from itertools import count

import pytest

from lithify.errors import PolicyError
from lithify.model.names import TopicName, TopicReference
from lithify.model.record import Record
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.model.sources.origin import KAFKA, OWN, CopyOf
from lithify.model.sources.source import IngestRequest
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import WrittenBatch
from lithify.ports.store import CommitUnknownError
from lithify.service.change.alter import alter
from lithify.service.change.cut import truncate
from lithify.service.change.topics import delete_topic
from lithify.service.creation import create_topic
from lithify.service.documents import put_source
from lithify.service.ingest.ingest import ingest
from lithify.service.ingest.known_sources import check_one_can_begin
from lithify.service.ingest.promote_copy import promote_copy
from lithify.service.look.status import topic_info
from lithify.service.read.fetch import open_log
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.service.replica.promote import promote
from lithify.service.write.append import append
from support.faults.ports import Freezer, faulty
from support.topics.listed_source import MARKERS, ListedSource
from support.topics.memory_topic import a_warehouse
from support.topics.replicas import two_warehouses
from support.topics.staged_batches import append_batch

NAME = TopicName("default", "orders")
OURS = [Record(b"ours", b"0", partition=0)]


def kafkas(*offsets):
    return {0: [Record(b"k", b"%d" % offset, 1_000, partition=0, offset=offset) for offset in offsets]}


@pytest.fixture
def warehouse():
    return a_warehouse()


def copied(warehouse, records, topic="orders"):
    source = ListedSource(warehouse, {topic: records}, system=KAFKA)
    (report,) = ingest(warehouse, source, IngestRequest({}, (topic,), into="orders"), lambda _: None, lambda: False)
    return report


def values(warehouse):
    return [(record.offset, record.value) for record in open_log(warehouse, warehouse.store.load(NAME), 0)]


def created(warehouse):
    return create_topic(warehouse, TopicReference(NAME, "orders"), {}, 1)


APPENDS = {
    "append": lambda warehouse: append(warehouse, NAME, OURS),
    "keep offsets": lambda warehouse: append(
        warehouse, NAME, [OURS[0]._replace(offset=70, timestamp=1)], keep_offsets=True
    ),
    "expected end": lambda warehouse: append(warehouse, NAME, OURS, expected_end={0: 2 + MARKERS}),
    "a batch of tasks": lambda warehouse: append_batch(warehouse, NAME, [OURS], WrittenBatch("q", 1), warehouse.files),
}


@pytest.mark.parametrize("how", APPENDS)
def test_a_copy_takes_nothing_else(warehouse, how):
    copied(warehouse, kafkas(0, 1))
    with pytest.raises(PolicyError, match="it is a copy of Kafka's orders") as refused:
        APPENDS[how](warehouse)
    assert "lithify.kafka.promote(lake.topic('orders'))" in refused.value.hint
    copied(warehouse, kafkas(0, 1, 4, 5))
    assert values(warehouse) == [(0, b"0"), (1, b"1"), (4, b"4"), (5, b"5")]


def test_a_copy_of_an_empty_topic_takes_nothing_else_either(warehouse):
    assert copied(warehouse, {0: []}).error is None
    with pytest.raises(PolicyError):
        append(warehouse, NAME, OURS)


def test_what_was_appended_before_is_not_taken_for_a_copy(warehouse):
    created(warehouse)
    append(warehouse, NAME, OURS)
    report = copied(warehouse, kafkas(0, 1))
    assert report.refused
    assert "it has records that no ingest has copied" in report.error
    truncate(warehouse, NAME, 0, 0)
    assert copied(warehouse, kafkas(0, 1)).records == 2


def test_a_copy_of_an_earlier_lithify_is_one_from_the_next_ingest_on(warehouse):
    state = created(warehouse)
    put_source(warehouse.store, state, CopiedTopic("orders", "id of orders"))
    append(warehouse, NAME, kafkas(0, 1)[0], keep_offsets=True)
    assert copied(warehouse, kafkas(0, 1, 2)).records == 1
    assert warehouse.store.load(NAME).origin == CopyOf(KAFKA, "orders")


def test_a_promoted_copy_goes_its_own_way(warehouse):
    copied(warehouse, kafkas(0, 1))
    report = promote_copy(warehouse, NAME)
    assert (report.topic, report.copy_of, report.version) == ("orders", "orders", warehouse.store.load(NAME).version)
    append(warehouse, NAME, OURS)
    assert values(warehouse) == [(0, b"0"), (1, b"1"), (2 + MARKERS, b"0")]
    again = copied(warehouse, kafkas(0, 1, 4, 5))
    assert again.refused
    assert "it was promoted" in again.error
    with pytest.raises(PolicyError, match="it was promoted"):
        promote_copy(warehouse, NAME)


def test_a_topic_of_its_own_is_not_promoted(warehouse):
    created(warehouse)
    with pytest.raises(PolicyError, match="it is not a copy of a Kafka topic"):
        promote_copy(warehouse, NAME)


def test_one_copy_is_of_one_topic(warehouse):
    copied(warehouse, kafkas(0, 1))
    report = copied(warehouse, kafkas(0, 1), topic="others")
    assert report.refused
    assert "orders, not of others" in report.error


def test_a_topic_says_what_it_is_a_copy_of(warehouse):
    copied(warehouse, kafkas(0, 1))
    assert topic_info(warehouse, warehouse.store.load(NAME)).copy_of == "orders"
    promote_copy(warehouse, NAME)
    assert topic_info(warehouse, warehouse.store.load(NAME)).copy_of is None


def test_a_replica_of_a_copy_is_one_too_once_it_is_promoted(tmp_path):
    source, target = two_warehouses("memory", tmp_path)
    copied(source, kafkas(0, 1))
    mirror(source, target, NAME, MirrorRequest("there"))
    promote(target, NAME)
    with pytest.raises(PolicyError, match="it is a copy of Kafka's orders"):
        append(target, NAME, OURS)
    assert copied(target, kafkas(0, 1, 4)).records == 1
    promote_copy(source, NAME)
    assert append(source, NAME, OURS).records == 1


@pytest.mark.parametrize("promotes", [False, True])
def test_a_refused_ingest_adds_no_partitions(warehouse, promotes):
    if promotes:
        copied(warehouse, kafkas(0, 1))
        promote_copy(warehouse, NAME)
    else:
        created(warehouse)
        append(warehouse, NAME, OURS)
    before = warehouse.store.load(NAME)
    assert copied(warehouse, {p: [] for p in range(4)}).refused
    assert warehouse.store.load(NAME) == before


class LosesFirstAnswer:
    """The answer of the first commit gets lost, and `others` come before it is looked for."""

    def __init__(self, others):
        self.others, self.lost = others, False

    def call(self, name, action):
        answer = action()
        if name == "commit" and not self.lost:
            self.lost = True
            self.others()
            raise CommitUnknownError("lost")
        return answer


def test_an_ingest_whose_first_commit_was_overtaken_by_a_promotion_copies_nothing(warehouse):
    created(warehouse)

    def others():
        promote_copy(warehouse, NAME)
        append(warehouse, NAME, OURS)

    report = copied(faulty(warehouse, LosesFirstAnswer(others)), kafkas(0, 1, 2))
    assert "was promoted" in report.error
    assert values(warehouse) == [(0, b"0")]


def test_a_topic_that_was_recreated_during_the_ingest_is_no_copy(warehouse):
    """At whatever call of the ingest: it was a copy of an earlier Lithify, and has a record of its own now."""

    def others():
        delete_topic(warehouse, TopicReference(NAME, "orders"))
        created(warehouse)
        append(warehouse, NAME, OURS)

    for at in count(1):
        if NAME in warehouse.store.topics():
            delete_topic(warehouse, TopicReference(NAME, "orders"))
        put_source(warehouse.store, created(warehouse), CopiedTopic("orders", "id of orders"))
        append(warehouse, NAME, kafkas(0)[0], keep_offsets=True)
        freezer = Freezer(at, others)
        report = copied(faulty(warehouse, freezer), kafkas(0, 1))
        if not freezer.reached:
            return
        assert report.error is not None or values(warehouse) == [(0, b"0")]
        assert warehouse.store.load(NAME).origin == OWN


def test_a_repair_does_not_take_a_promotion_back(warehouse):
    """It may restore the version before it: the document says that no ingest goes on."""
    copied(warehouse, kafkas(0, 1))
    promote_copy(warehouse, NAME)
    append(warehouse, NAME, OURS)
    state = warehouse.store.load(NAME)
    warehouse.store.commit(state, TopicEdit("repair", 1, {}, origin=CopyOf(KAFKA, "orders")))
    report = copied(warehouse, kafkas(0, 1, 4, 5))
    assert "it was promoted" in report.error
    promote_copy(warehouse, NAME)
    assert append(warehouse, NAME, OURS).records == 1


def test_a_replica_is_told_to_be_one(tmp_path):
    source, target = two_warehouses("memory", tmp_path)
    created(source)
    mirror(source, target, NAME, MirrorRequest("there"))
    with pytest.raises(PolicyError, match="it is a replica of the topic in there"):
        promote_copy(target, NAME)


def test_an_ingest_that_can_copy_nothing_ends_before_it_begins(warehouse):
    """Without Spark: only where all topics that are named would be refused."""
    copied(warehouse, kafkas(0, 1))
    promote_copy(warehouse, NAME)
    store = warehouse.store
    with pytest.raises(PolicyError, match="it was promoted"):
        check_one_can_begin(store, KAFKA, IngestRequest({}, ("orders",)))
    check_one_can_begin(store, KAFKA, IngestRequest({}, ("orders", "others")))
    check_one_can_begin(store, KAFKA, IngestRequest({}, ("orders",), into="others"))
    check_one_can_begin(store, KAFKA, IngestRequest({}, pattern="ord.*"))


def test_a_copy_has_the_partitions_of_kafka(warehouse):
    copied(warehouse, kafkas(0, 1))
    with pytest.raises(PolicyError, match="is a copy of Kafka's orders and has the same partitions"):
        alter(warehouse, NAME, {}, partitions=2)
    copied(warehouse, {**kafkas(0, 1), 1: []})
    assert len(warehouse.store.load(NAME).logs) == 2
    alter(warehouse, NAME, {"retention.ms": 5}, partitions=2)
    promote_copy(warehouse, NAME)
    alter(warehouse, NAME, {}, partitions=3)
