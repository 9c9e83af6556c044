"""The append path of a gateway: joined commits, refusals of single callers, and idempotency keys (C60, C75)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes, open_append_notes
from lithify.errors import (
    BusyError,
    FencedError,
    InvalidInputError,
    InvalidRecordError,
    LithifyError,
    RefusedError,
    UnknownOutcomeError,
    UnknownTopicError,
)
from lithify.gateway.appends.appends import Appends, _Work
from lithify.gateway.appends.key_guard import Wanted
from lithify.gateway.appends.keys import AppendKey
from lithify.gateway.appends.turns import Limits
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.append_note import NOTES_KEPT_MS
from lithify.model.topic.log import BATCHES_KEPT, WrittenBatch
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.read.fetch import open_log
from lithify.service.write.append import AppendResult, append
from lithify.service.write.append_joined import Part
from lithify.service.write.append_staged import StagedBatch, append_staged
from support.faults.ports import CrashError, FaultyPort, Kind
from support.topics.memory_topic import a_warehouse

NAME = TopicName("default", "orders")
SCOPE = WarehouseScope("warehouse", "warehouse", "warehouse")
ENOUGH_S = 30


def some(text: str, count: int = 3, partition: int | None = 0) -> list[Record]:
    return [Record(key=b"k", value=f"{text}{n}".encode(), partition=partition) for n in range(count)]


def key(text: str = "4711", sent: bytes = b"a") -> AppendKey:
    return AppendKey.of(text, sent)


@pytest.fixture
def warehouse() -> Warehouse:
    warehouse = a_warehouse(now_ms=10 * NOTES_KEPT_MS)
    make_topic(warehouse)
    return warehouse


def make_topic(warehouse: Warehouse) -> None:
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings_of({}), 2, warehouse.clock.now_ms()))


@pytest.fixture
def notes(tmp_path: Path) -> SqlAppendNotes:
    return open_append_notes(f"sqlite:///{tmp_path}/leases.db", None, SCOPE)


def values(warehouse: Warehouse) -> list[bytes]:
    state = warehouse.store.load(NAME)
    return [r.value or b"" for p in state.partitions for r in open_log(warehouse, state, p)]


def wanted(*texts: str) -> list[bytes]:
    return [r.value or b"" for text in texts for r in some(text)]


class Gate:
    """A store whose first commit waits until it is opened, so that other appends join the next one."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.begun, self.opened = threading.Event(), threading.Event()
        self.warehouse = Warehouse(FaultyPort(warehouse.store, self), warehouse.files, warehouse.clock)  # type: ignore[arg-type]
        self.commits = 0

    def call(self, name: str, action):  # type: ignore[no-untyped-def]
        if name == "commit":
            self.commits += 1
            self.begun.set()
            assert self.opened.wait(ENOUGH_S)
        return action()


def joined(gate: Gate, appends: Appends, *calls) -> list[AppendResult | LithifyError]:  # type: ignore[no-untyped-def]
    """The outcomes of calls that wait for the same turn, in order, while the append of `first` is committed."""
    with ThreadPoolExecutor(len(calls) + 1) as pool:
        first = pool.submit(appends.append, NAME, some("first"))
        assert gate.begun.wait(ENOUGH_S)
        waiting = []
        for number, call in enumerate(calls, 1):
            waiting.append(pool.submit(call))
            while len(appends._turns._queues[NAME].waiting) < number and not waiting[-1].done():
                pass
        gate.opened.set()
        first.result()
        outcomes: list[AppendResult | LithifyError] = []
        for one in waiting:
            try:
                outcomes.append(one.result())
            except LithifyError as error:
                outcomes.append(error)
        return outcomes


def test_appends_that_wait_are_one_commit_each_with_its_own_offsets(warehouse: Warehouse) -> None:
    gate = Gate(warehouse)
    appends = Appends(gate.warehouse, None)
    calls = [lambda n=n: appends.append(NAME, some(f"{n}-", partition=n % 2)) for n in range(6)]

    outcomes = joined(gate, appends, *calls)

    assert gate.commits == 2
    state = warehouse.store.load(NAME)
    for number, outcome in enumerate(outcomes):
        assert isinstance(outcome, AppendResult)
        assert outcome.version == state.version
        (place,) = outcome.ranges
        log = list(open_log(warehouse, state, place.partition))
        assert [r.value for r in log[place.start_offset : place.end_offset]] == wanted(f"{number}-")
    assert [len(warehouse.store.segments(state, [p])) for p in (0, 1)] == [2, 1]


def test_a_refused_part_fails_only_its_own_caller(warehouse: Warehouse) -> None:
    gate = Gate(warehouse)
    appends = Appends(gate.warehouse, None)

    a, keyless, b, fenced, c = joined(
        gate,
        appends,
        lambda: appends.append(NAME, some("a")),
        lambda: appends.append(NAME, [Record(key=None, value=b"x")]),
        lambda: appends.append(NAME, some("b")),
        lambda: appends.append(NAME, some("d"), expected_end={0: 1}),
        lambda: appends.append(NAME, []),
    )

    assert isinstance(keyless, InvalidRecordError)
    assert isinstance(fenced, FencedError)
    assert all(isinstance(one, AppendResult) for one in (a, b, c))
    assert values(warehouse) == wanted("first", "a", "b")


def test_expected_ends_are_exact_in_a_joined_commit(warehouse: Warehouse) -> None:
    gate = Gate(warehouse)
    appends = Appends(gate.warehouse, None)

    _, right, too_late = joined(
        gate,
        appends,
        lambda: appends.append(NAME, some("a")),
        lambda: appends.append(NAME, some("b"), expected_end={0: 3, 1: 0}),
        lambda: appends.append(NAME, some("c"), expected_end={0: 3}),
    )

    assert isinstance(right, AppendResult)
    assert right.ranges[0].start_offset == 3
    assert isinstance(too_late, FencedError)
    assert values(warehouse) == wanted("first", "b", "a")


def test_what_waits_is_bounded(warehouse: Warehouse) -> None:
    gate = Gate(warehouse)
    appends = Appends(gate.warehouse, None, Limits(topic_appends=2))

    outcomes = joined(gate, appends, *(lambda n=n: appends.append(NAME, some(f"{n}")) for n in range(4)))

    assert [type(one) for one in outcomes] == [AppendResult, AppendResult, BusyError, BusyError]
    assert not appends._turns._queues[NAME].waiting
    assert (appends._turns._bytes, appends._turns._appends) == (0, 0)


def test_a_large_append_is_taken_if_nothing_else_waits_and_goes_alone(warehouse: Warehouse) -> None:
    gate = Gate(warehouse)
    appends = Appends(gate.warehouse, None, Limits(topic_bytes=1, total_bytes=1, commit_bytes=1))

    outcomes = joined(gate, appends, lambda: appends.append(NAME, some("a")), lambda: appends.append(NAME, some("b")))

    assert [type(one) for one in outcomes] == [AppendResult, BusyError]


def test_no_turn_in_time_is_said_and_nothing_appended(warehouse: Warehouse) -> None:
    gate = Gate(warehouse)
    appends = Appends(gate.warehouse, None, Limits(wait_s=0.01))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(appends.append, NAME, some("first"))
        assert gate.begun.wait(ENOUGH_S)
        with pytest.raises(BusyError, match="no turn"):
            appends.append(NAME, some("a"))
        gate.opened.set()
        first.result()
    assert values(warehouse) == wanted("first")
    assert (appends._turns._bytes, appends._turns._appends) == (0, 0)


def test_an_unknown_topic_is_said_to_all(warehouse: Warehouse) -> None:
    with pytest.raises(UnknownTopicError):
        Appends(warehouse, None).append(TopicName("default", "none"), some("a"))


def test_the_same_key_gets_the_same_answer(warehouse: Warehouse, notes: SqlAppendNotes) -> None:
    first = Appends(warehouse, notes).append(NAME, some("a"), key())
    Appends(warehouse, notes).append(NAME, some("b"), key("4712"))

    assert Appends(warehouse, notes).append(NAME, some("a"), key()) == first
    assert values(warehouse) == wanted("a", "b")


def test_a_key_is_of_one_topic(warehouse: Warehouse, notes: SqlAppendNotes) -> None:
    other = TopicName("default", "other")
    warehouse.store.create_topic(NewTopic(other, "other", settings_of({}), 1, 0))
    appends = Appends(warehouse, notes)
    appends.append(NAME, some("a"), key())
    assert appends.append(other, some("a"), key()).ranges[0].start_offset == 0


def test_a_key_of_another_request_is_refused(warehouse: Warehouse, notes: SqlAppendNotes) -> None:
    appends = Appends(warehouse, notes)
    appends.append(NAME, some("a"), key())
    with pytest.raises(RefusedError, match="used for another request"):
        appends.append(NAME, some("b"), key(sent=b"b"))
    assert values(warehouse) == wanted("a")


def test_a_refused_request_leaves_its_key_unused(warehouse: Warehouse, notes: SqlAppendNotes) -> None:
    appends = Appends(warehouse, notes)
    with pytest.raises(InvalidRecordError):
        appends.append(NAME, [Record(key=None, value=b"")], key())
    with pytest.raises(FencedError):
        appends.append(NAME, some("a"), key(), {0: 7})
    appends.append(NAME, some("a"), key(sent=b"b"))
    assert values(warehouse) == wanted("a")


def test_without_a_shared_database_keys_are_refused(warehouse: Warehouse) -> None:
    with pytest.raises(RefusedError, match="need an SQL database"):
        Appends(warehouse, None).append(NAME, some("a"), key())


@pytest.mark.parametrize("text", ["", "k" * 256, "a\nb", "ключ"])
def test_keys_are_short_and_printable(text: str) -> None:
    with pytest.raises(InvalidInputError):
        key(text)


class Overtaken:
    """Files of which the first write is followed by the append of another writer."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._real, self._written = warehouse, False
        self.warehouse = Warehouse(warehouse.store, FaultyPort(warehouse.files, self), warehouse.clock)  # type: ignore[arg-type]

    def call(self, name: str, action):  # type: ignore[no-untyped-def]
        done = action()
        if name == "write" and not self._written:
            self._written = True
            append(self._real, NAME, some("other"))
        return done


def test_a_refused_append_does_not_count_as_landed_for_an_empty_one_beside_it(
    warehouse: Warehouse, notes: SqlAppendNotes
) -> None:
    """C75: the note of the refused one is of a run that has not landed."""
    appends = Appends(Overtaken(warehouse).warehouse, notes)
    parts = [(some("a"), key("a"), {0: 0}), ([], key("b"), {})]
    works = [_Work(Part(batch, ends), Wanted(one, warehouse.clock.now_ms())) for batch, one, ends in parts]

    fenced, empty = appends._commit(NAME, works)

    assert isinstance(fenced, FencedError)
    assert isinstance(empty, AppendResult)
    with pytest.raises(FencedError):
        Appends(warehouse, notes).append(NAME, some("a"), key("a"), {0: 0})
    assert values(warehouse) == wanted("other")


def test_the_parts_of_a_request_are_told_apart() -> None:
    assert AppendKey.of("k", b"ab", b"c") != AppendKey.of("k", b"a", b"bc")


def test_callers_with_the_same_key_at_once_append_once(warehouse: Warehouse, notes: SqlAppendNotes) -> None:
    gate = Gate(warehouse)
    appends = Appends(gate.warehouse, notes)
    with ThreadPoolExecutor(5) as pool:
        same = [pool.submit(appends.append, NAME, some("a"), key()) for _ in range(5)]
        assert gate.begun.wait(ENOUGH_S)
        with pytest.raises(RefusedError, match="another request"):
            appends.append(NAME, some("b"), key(sent=b"b"))
        gate.opened.set()
        answers = {one.result() for one in same}
    assert len(answers) == 1
    assert values(warehouse) == wanted("a")


def test_a_topic_that_was_recreated_gets_nothing_twice(warehouse: Warehouse, notes: SqlAppendNotes) -> None:
    first = Appends(warehouse, notes).append(NAME, some("a"), key())
    _strike_commit(warehouse, notes, Kind.CRASHES_AFTER)
    warehouse.store.drop_topic(NAME)
    make_topic(warehouse)

    assert Appends(warehouse, notes).append(NAME, some("a"), key()) == first
    with pytest.raises(UnknownOutcomeError):
        Appends(warehouse, notes).append(NAME, some("b"), key("b"))
    Appends(warehouse, notes).append(NAME, some("c"), key("c"))
    with pytest.raises(UnknownOutcomeError):
        Appends(warehouse, notes).append(NAME, some("b"), key("b"))
    assert values(warehouse) == wanted("c")


def test_a_chain_that_was_pushed_out_makes_open_appends_unknown(warehouse: Warehouse, notes: SqlAppendNotes) -> None:
    first = Appends(warehouse, notes).append(NAME, some("a"), key())
    _strike_commit(warehouse, notes, Kind.CRASHES_AFTER)
    for query in range(BATCHES_KEPT):
        append_staged(warehouse, lambda *_: (), StagedBatch(NAME, (), WrittenBatch(f"q{query}", 0)))

    assert Appends(warehouse, notes).append(NAME, some("a"), key()) == first
    with pytest.raises(UnknownOutcomeError):
        Appends(warehouse, notes).append(NAME, some("b"), key("b"))
    Appends(warehouse, notes).append(NAME, some("c"), key("c"))
    with pytest.raises(UnknownOutcomeError):
        Appends(warehouse, notes).append(NAME, some("b"), key("b"))
    assert values(warehouse) == wanted("a", "b", "c")


def _strike_commit(warehouse: Warehouse, notes: SqlAppendNotes, kind: Kind) -> None:
    """Appends `b` with a key, and strikes at its commit, after which the gateway ends."""

    class Striker:
        def call(self, name: str, action):  # type: ignore[no-untyped-def]
            if name != "commit":
                return action()
            if kind is Kind.CRASHES_AFTER:
                action()
            raise CrashError(name)

    struck = Warehouse(FaultyPort(warehouse.store, Striker()), warehouse.files, warehouse.clock)  # type: ignore[arg-type]
    with pytest.raises(CrashError):
        Appends(struck, notes).append(NAME, some("b"), key("b"))


@pytest.mark.parametrize("kind", [Kind.FAILS, Kind.CRASHES_AFTER])
def test_a_retry_finds_out_what_became_of_a_gateway_that_ended(
    warehouse: Warehouse, notes: SqlAppendNotes, kind: Kind
) -> None:
    Appends(warehouse, notes).append(NAME, some("a"), key())
    _strike_commit(warehouse, notes, kind)

    result = Appends(warehouse, notes).append(NAME, some("b"), key("b"))

    assert (result.ranges[0].start_offset, result.records) == (3, 3)
    assert values(warehouse) == wanted("a", "b")
    assert Appends(warehouse, notes).append(NAME, some("b"), key("b")) == result
