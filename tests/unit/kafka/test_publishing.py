"""What a publication takes for a later version, and what it does about the progress of another run (C49)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from lithify.errors import InvalidRecordError, LogTruncatedError
from lithify.kafka.publisher import publishing
from lithify.kafka.publisher import session as publishing_session
from lithify.kafka.publisher.offset_map import OffsetMap
from lithify.kafka.publisher.publishing import _Run
from lithify.kafka.publisher.reports import PublishedLog
from lithify.kafka.publisher.session import Session, _begun
from lithify.kafka.publisher.transactions import Stored
from lithify.kafka.publisher.translated_groups import Groups
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.testing.fake_clock import FakeClock
from support.builders import a_topic
from support.topics.memory_topic import MemoryTopic


@dataclass
class Versions:
    """A topic that is at one version after the other."""

    left: list[TopicState]
    name: str = "orders"
    warehouse: Any = field(default_factory=lambda: SimpleNamespace(clock=FakeClock()))

    def state(self) -> TopicState:
        return self.left.pop(0)


def test_another_state_of_the_same_version_number_is_the_next_one() -> None:
    state = a_topic(LogState(0))
    restored = replace(state, logs=(state.log(0).with_run("other"),))
    cluster: Any = SimpleNamespace(stops=lambda: False)
    topic: Any = Versions([replace(state), replace(state), restored])
    wanted: Any = SimpleNamespace(to="t")
    run = _Run(topic, wanted, cluster, 1_000, lambda _records: None, lambda _note: None, Groups())
    assert run._next(state, lambda _records: None) == restored


def ahead_of(loaded: TopicState, topic: MemoryTopic) -> dict[int, Stored]:
    """The progress of a run that has published the newest version."""
    assert topic.state.version > loaded.version
    return {0: Stored(Cursor.of(topic.state, topic.log(), topic.log().log_end_offset), OffsetMap())}


def test_what_another_run_has_published_since_is_compared_with_a_later_version() -> None:
    topic = MemoryTopic()
    topic.append([Record(b"a", b"1")])
    loaded = topic.state
    topic.append([Record(b"a", b"2")])
    ahead = ahead_of(loaded, topic)
    with pytest.raises(LogTruncatedError, match="an earlier state of the topic"):
        _begun(ahead, a_warehouse_at(loaded), loaded)
    assert _begun(ahead, topic.warehouse, loaded) == topic.state
    by_earlier = {0: replace(ahead[0], cursor=ahead[0].cursor.without_run())}
    assert _begun(by_earlier, topic.warehouse, loaded) == topic.state  # 0.2.0 does not say which version it was
    same = {0: Stored(Cursor.of(loaded, loaded.log(0), 1), OffsetMap())}
    assert _begun(same, a_warehouse_at(None), loaded) == loaded


@pytest.mark.parametrize("further", ["append", "compact"])
def test_a_run_goes_on_where_another_one_has_published_a_later_version(further: str) -> None:
    """It loaded its version, then fenced that run: what this has published meanwhile is no restored log."""
    topic = MemoryTopic(delete_retention_ms=0)
    topic.append([Record(b"a", b"1"), Record(b"a", b"2")])
    loaded = topic.state
    topic.append([Record(b"a", b"3")]) if further == "append" else topic.compact()
    stored, cluster = ahead_of(loaded, topic), SimpleNamespace(stops=lambda: False)
    state, transactions = _begun(stored, topic.warehouse, loaded), SimpleNamespace(records=0)
    session = Session(topic.warehouse, cluster, transactions, Any, state, stored, {})  # type: ignore[arg-type]
    session.publish(session.state, lambda _records: None)
    assert session.published == {0: PublishedLog(0, topic.log().log_end_offset, topic.log().log_end_offset, 0)}


def test_a_run_begins_again_where_the_topic_got_partitions_before_it_fenced_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The target that it has found or made is for fewer: nothing is published into it until it is looked at again."""
    small, large = (a_topic(*map(LogState, range(partitions))) for partitions in (1, 2))
    opened: list[int] = []

    def session(_warehouse: object, _cluster: object, given: TopicState, _wanted: object, published: Any) -> Any:
        opened.append(len(given.partitions))
        found = Mock(state=large, target=Mock(created=False, config={}), stored={}, published=published)
        found.publish.side_effect = lambda state, _tell: published.update(
            {p: PublishedLog(p, 0, opened[-1], 0) for p in state.partitions}
        )
        found.progress.return_value = ()
        return found

    monkeypatch.setattr(publishing, "open_session", session)
    monkeypatch.setattr(publishing, "Pulse", MagicMock())
    monkeypatch.setattr(_Run, "_look_first", lambda _run, _conf: None)
    topic: Any = Versions([small, small, large])
    cluster: Any = SimpleNamespace(stops=lambda: False)
    wanted: Any = SimpleNamespace(to="t")
    run = _Run(topic, wanted, cluster, 1_000, lambda _records: None, lambda _note: None, Groups())
    report = run.run({}, continuous=False)
    assert opened == [1, 2]
    assert report.logs == (PublishedLog(0, 0, 2, 0), PublishedLog(1, 0, 2, 0))


@dataclass
class Sent:
    """Stands in for `Transactions`: what each call and each transaction got."""

    records: int = 0
    bytes: int = 0
    calls: list[tuple[int, int]] = field(default_factory=list)
    transactions: list[tuple[int, int]] = field(default_factory=list)

    def send(self, records: Sequence[Record], size_bytes: int) -> None:
        assert size_bytes == sum(record.size_bytes for record in records)
        self.calls.append((len(records), size_bytes))
        self.records += len(records)
        self.bytes += size_bytes

    def commit(self, _partition: int, stored: Stored, _exact_at: Sequence[int]) -> Stored:
        self.transactions.append((stored.cursor.offset, self.records))
        self.records = self.bytes = 0
        return stored


def published(topic: MemoryTopic, **target: object) -> Sent:
    """What a session sends that publishes everything."""
    sent, cluster = Sent(), SimpleNamespace(stops=lambda: False)
    there: Any = SimpleNamespace(compacts=True, **target)
    transactions: Any = sent
    session = Session(topic.warehouse, cluster, transactions, there, topic.state, {}, {})  # type: ignore[arg-type]
    session.publish(topic.state, lambda _records: None)
    return sent


def test_a_transaction_has_as_many_records_as_its_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing_session, "TRANSACTION_RECORDS", 7)
    monkeypatch.setattr(publishing_session, "PIECE_RECORDS", 3)
    topic = MemoryTopic()
    topic.append([Record(b"k%d" % number, b"v", 1) for number in range(17)])
    sent = published(topic)
    assert [count for count, _ in sent.calls] == [3, 3, 1, 3, 3, 1, 3]
    assert sent.transactions == [(7, 7), (14, 7), (17, 3)]


def test_large_records_are_sent_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a transaction ends at its limit of bytes, and not a piece of such records behind it."""
    monkeypatch.setattr(publishing_session, "PIECE_BYTES", 100)
    monkeypatch.setattr(publishing_session, "TRANSACTION_BYTES", 150)
    topic = MemoryTopic()
    topic.append([Record(b"k%d" % number, b"v" * size, 1) for number, size in enumerate((40, 40, 40, 300, 1, 90))])
    sent = published(topic)
    assert sum(count for count, _ in sent.calls) == 6
    assert all(count == 1 or size <= 100 for count, size in sent.calls)
    assert len(sent.calls) < 6
    assert sent.transactions == [(4, 4), (6, 2)]


@pytest.mark.parametrize("wrong", [Record(b"a", b"1", 0), Record(b"a", b"1", 1, (("a\0b", None),))])
def test_a_record_that_cannot_be_sent_is_found_among_others(wrong: Record) -> None:
    topic = MemoryTopic()
    topic.append([Record(b"k%d" % number, b"v", 1, (("h", b"x"),)) for number in range(5)])
    topic.append([Record(b"k7", b"v", 1), wrong, Record(b"k8", b"v", 1)])
    with pytest.raises(InvalidRecordError, match=r"at or after offset 6|record at offset 6 has a header"):
        published(topic)


def a_warehouse_at(state: TopicState | None) -> Any:
    """A warehouse whose topic is at that version."""
    return SimpleNamespace(store=SimpleNamespace(load=lambda _name: state))
