"""Every port call of an ingest from Pulsar fails in turn: no message is left out, and none is there twice (C52, C6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.cases import STRIKES
from lithify.errors import LithifyError
from lithify.model.message import MessageId, MessagePosition
from lithify.model.names import TopicName
from lithify.model.sources.source import IngestRequest
from lithify.ports.store import Warehouse
from lithify.pulsar.format.wire_pb2 import EncryptionKeys
from lithify.reports.ingest import IngestNote
from lithify.service.change.cut import truncate
from lithify.service.ingest.ingest import ingest
from lithify.service.read.fetch import open_log
from support.faults.ports import CrashError, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import MAKERS
from support.pulsar.entries import Sent, batch, single
from support.pulsar.listed import ListedEntries
from support.topics.whole_logs import check_whole

NAME = TopicName("default", "copy")
MARKER = single(9, 1, Sent(None), marker_type=10)
ENTRIES = {
    0: [
        batch(5, 0, [Sent("a", b"1"), Sent("b", b"2"), Sent("c", b"3")]),
        single(5, 1, Sent("a", b"4")),
        single(7, 0, Sent("b", b"5")),
        batch(9, 0, [Sent("a", b"6"), Sent(None, b"7")]),
        MARKER,
    ],
    1: [single(6, 0, Sent("d", b"8"))],
}
VALUES = {0: [b"1", b"2", b"3", b"4", b"5", b"6", b"7"], 1: [b"8"]}


def copied(warehouse: Warehouse) -> None:
    """Raises what stopped it."""
    request = IngestRequest(config={}, topics=("persistent://t/n/a",), into="copy")
    (report,) = ingest(warehouse, ListedEntries(warehouse, ENTRIES), request, lambda _: None, lambda: False)
    if report.error is not None:
        raise LithifyError(report.error)


def values(warehouse: Warehouse) -> dict[int, list[bytes | None]]:
    state = check_whole(warehouse, NAME)
    return {p: [r.value for r in open_log(warehouse, state, p)] for p in state.partitions}


@pytest.mark.parametrize(("store", "kind"), STRIKES, ids=lambda value: getattr(value, "name", value).lower())
def test_a_struck_ingest_goes_on_where_it_was(store: str, kind: Kind, tmp_path: Path) -> None:
    """C52, C6."""
    for injector in strikes(kind, store):
        warehouse = MAKERS[store](tmp_path / str(injector.at))
        try:
            copied(faulty(warehouse, injector))
        except (LithifyError, CrashError):
            assert injector.struck
        copied(warehouse)
        assert values(warehouse) == VALUES, injector
        state = warehouse.store.load(NAME)
        assert state.log(0).copied_to == MessageId(9, 1)  # the marker too, of which nothing is stored


def sealed_last(warehouse: Warehouse) -> None:
    """A copy whose last message is in an encrypted batch."""
    sealed = batch(9, 2, [Sent("a"), Sent("b")], encryption_keys=[EncryptionKeys(key=b"k", value=b"v")])
    request = IngestRequest(config={}, topics=("persistent://t/n/a",), into="copy")
    source = ListedEntries(warehouse, {0: [*ENTRIES[0], sealed]})
    (report,) = ingest(warehouse, source, request, lambda _: None, lambda: False)
    assert report.error is None


def last_position(warehouse: Warehouse) -> object:
    return open_log(warehouse, warehouse.store.load(NAME), 0).last_message_id()


@pytest.mark.parametrize("store", MAKERS)
def test_the_last_position_is_right_or_an_error(store: str, tmp_path: Path) -> None:
    """C52, C8."""
    warehouse = MAKERS[store](tmp_path)
    sealed_last(warehouse)
    wanted = last_position(warehouse)
    assert isinstance(wanted, MessagePosition)
    assert wanted.id == MessageId(9, 2, 1)
    for injector in strikes(Kind.FAILS):
        try:
            assert last_position(faulty(warehouse, injector)) == wanted
        except LithifyError as error:
            assert "injected" in str(error)


@pytest.mark.parametrize("store", MAKERS)
@pytest.mark.parametrize("to", range(8))
def test_what_is_truncated_is_copied_again(store: str, to: int, tmp_path: Path) -> None:
    """C52, C26: at any offset, also within a batch."""
    warehouse = MAKERS[store](tmp_path)
    copied(warehouse)
    truncate(warehouse, NAME, 0, to)
    assert values(warehouse)[0] == VALUES[0][:to]
    copied(warehouse)
    assert values(warehouse) == VALUES


@pytest.mark.parametrize("store", MAKERS)
def test_a_batch_that_lies_about_its_count_stops_a_copy_only_until_it_is_to_be_skipped(
    store: str, tmp_path: Path
) -> None:
    """C74: it is copied whole then, and the report and a note name it."""
    liars = [batch(9, at, [Sent("a"), Sent("b")], num_messages_in_batch=5) for at in (2, 3)]
    last = single(9, 4, Sent("e", b"9"))
    warehouse = MAKERS[store](tmp_path)
    request = IngestRequest(config={}, topics=("persistent://t/n/a",), into="copy", skip_damaged=True)
    for skips in (False, True):
        source = ListedEntries(warehouse, {0: [*ENTRIES[0], *liars, last]}, skip_damaged=skips)
        notes: list[IngestNote] = []
        (report,) = ingest(warehouse, source, request, lambda _: None, lambda: False, notes.append)
        if not skips:
            assert "entry 9:2 of the topic is damaged" in str(report.error)
    assert (report.error, report.damaged_entries, report.damaged_named) == (None, 2, ("9:2", "9:3"))
    told = [note.text for note in notes if note.event == "damaged"]
    assert told == [f"copy-0: 1 damaged entry was kept whole: 9:{entry}" for entry in (2, 3)]  # a batch each
    state = check_whole(warehouse, NAME)
    assert [r.passed_through for r in open_log(warehouse, state, 0)] == [False] * 7 + [True] * 2 + [False]
    assert (state.log(0).volume.passed_through, state.log(0).copied_to) == (2, MessageId(9, 4))
