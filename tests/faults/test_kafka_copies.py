"""An append, an ingest and a promotion of one topic meet at every port call: no record of Kafka is left out (C70)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from lithify.errors import LithifyError
from lithify.model.names import TopicName, TopicReference
from lithify.model.record import Record
from lithify.model.sources.origin import KAFKA, PROMOTED, CopyOf
from lithify.model.sources.source import IngestRequest
from lithify.model.topic.log import WrittenBatch
from lithify.ports.store import Warehouse
from lithify.service.creation import create_topic
from lithify.service.documents import source_of
from lithify.service.ingest.ingest import ingest
from lithify.service.ingest.promote_copy import promote_copy
from lithify.service.read.fetch import open_log
from lithify.service.write.append import append
from support.faults.ports import CrashError, Freezer, faulty
from support.topics.listed_source import ListedSource
from support.topics.memory_topic import a_warehouse
from support.topics.staged_batches import append_batch
from support.topics.whole_logs import check_whole

NAME = TopicName("default", "orders")
KAFKAS = [Record(b"k", b"kafka's %d" % n, 1_000, partition=0, offset=n) for n in range(4)]
OURS = [Record(b"ours", b"ours", partition=0)]
Doing = Callable[[Warehouse], object]


def copied(warehouse: Warehouse, records: Sequence[Record] = KAFKAS) -> bool:
    """Whether an ingest says that it has copied everything."""
    ports = [getattr(port, "_real", port) for port in (warehouse.store, warehouse.files)]
    config = {"a setting": str(len(records))}  # another one each time, so that each ingest stores what it knows
    source = ListedSource(Warehouse(*ports, warehouse.clock), {"orders": {0: records}}, config=config, system=KAFKA)
    (report,) = ingest(warehouse, source, IngestRequest({}, ("orders",)), lambda _: None, lambda: False)
    return report.error is None


def appended(warehouse: Warehouse) -> bool:
    """Whether it was acknowledged."""
    with suppress(LithifyError):
        return bool(append(warehouse, NAME, OURS).records)
    return False


def batch(warehouse: Warehouse) -> bool:
    with suppress(LithifyError):
        files = getattr(warehouse.files, "_real", warehouse.files)
        return bool(append_batch(warehouse, NAME, [OURS], WrittenBatch("query", 1), files))
    return False


def promoted(warehouse: Warehouse) -> bool:
    with suppress(LithifyError):
        return bool(promote_copy(warehouse, NAME))
    return False


DOINGS: Mapping[str, Doing] = {"ingest": copied, "append": appended, "batch": batch, "promote": promoted}
PAIRS = [pair for pair in itertools.permutations(DOINGS, 2) if "ingest" in pair]


def meetings(frozen: Doing, other: Doing) -> Iterator[Warehouse]:
    """A topic each, on which `other` comes before another port call of `frozen`; a copy if it may be promoted."""
    for at in itertools.count(1):
        warehouse = a_warehouse()
        create_topic(warehouse, TopicReference(NAME, "orders"), {}, 1)
        if promoted in (frozen, other):
            copied(warehouse, KAFKAS[:2])
        freezer = Freezer(at, lambda warehouse=warehouse: other(warehouse))
        frozen(faulty(warehouse, freezer))
        if not freezer.reached:
            return
        yield warehouse


@pytest.mark.parametrize(("frozen", "other"), PAIRS)
def test_no_record_of_kafka_is_left_out(frozen: str, other: str) -> None:
    """C70: an ingest that says that all is copied is right, whatever came first."""
    met = 0
    for warehouse in meetings(DOINGS[frozen], DOINGS[other]):
        whole = copied(warehouse)
        state = check_whole(warehouse, NAME)
        values = [record.value for record in open_log(warehouse, state, 0)]
        kafkas = [value for value in values if value != b"ours"]
        assert kafkas == [record.value for record in KAFKAS][: len(KAFKAS) if whole else len(kafkas)]
        if isinstance(state.origin, CopyOf):
            assert whole
            assert b"ours" not in values
        elif b"ours" in values:
            assert not whole
        if state.origin == PROMOTED:  # also in the document, which a repair leaves as it is
            known = source_of(warehouse.store, state)
            assert known is not None and known.promoted
        met += 1
    assert met >= 3


@dataclass(slots=True)
class KilledAfterPromotion(Freezer):
    """Before the `at`-th call the copy is promoted; the process dies before the call `later` calls after it."""

    later: int = 1

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        if len(self.calls) + 1 == self.at + self.later:
            self.calls.append(name)
            raise CrashError(name)
        return super(KilledAfterPromotion, self).call(name, action)


def test_a_promotion_is_remembered_wherever_an_ingest_is_killed_that_had_begun_before() -> None:
    """C70: also in the documents, as a repair may restore an earlier version of the topic."""
    killed = 0
    for at, later in itertools.product(range(1, 20), (1, 2)):
        warehouse = a_warehouse()
        create_topic(warehouse, TopicReference(NAME, "orders"), {}, 1)
        copied(warehouse, KAFKAS[:2])
        dies = KilledAfterPromotion(at, lambda warehouse=warehouse: promote_copy(warehouse, NAME), later=later)
        try:
            copied(faulty(warehouse, dies))
        except CrashError:
            killed += 1
        if dies.reached:
            known = source_of(warehouse.store, warehouse.store.load(NAME))
            assert known is not None and known.promoted, dies.calls
    assert not dies.reached and killed > 3


def test_a_promotion_is_of_the_copy_that_was_asked_for() -> None:
    """Where that is deleted at any call, and another copy has its name, this one stays a copy (C70)."""
    refused = 0
    for at in itertools.count(1):
        warehouse = a_warehouse()
        copied(warehouse)
        asked = warehouse.store.load(NAME).identity

        def another(warehouse: Warehouse = warehouse) -> None:
            warehouse.store.drop_topic(NAME)
            copied(warehouse)

        freezer = Freezer(at, another)
        done = promoted(faulty(warehouse, freezer))
        if not freezer.reached:
            break
        state = warehouse.store.load(NAME)
        assert state.identity != asked
        if at > freezer.calls.index("load") + 1:  # else it was asked for this one
            assert state.origin == CopyOf(KAFKA, "orders")
            refused += not done
    assert refused > 3
