"""What is said of a view that bookies do not take (C55)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event

import pytest

from lithify.columnar.rewrite import Throttles
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.ports.pulsar.views import EntryRange
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.framing import framed
from lithify.pulsar.rounds.entry_scan import NumberedRange
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.pulsar.rounds.view_ledger import NewView, opened_early, write_view
from lithify.pulsar.rounds.view_writing import view_range
from support.pulsar.entries import Sent, single
from support.pulsar.ledgers import Closed, FileLedgers, LedgerFolder

ENTRIES = [single(5, 0, Sent("a")), single(5, 1, Sent("b", bytes(5000))), single(5, 2, Sent("c"))]


class Listed:
    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        yield ENTRIES


class SmallFrames(FileLedgers):
    """Of bookies that take no large entry, and say so at once or in the end."""

    def append(self, entries: Sequence[bytes]) -> None:
        if max(map(len, entries)) > 1000:
            raise BrokerError("BookKeeper refused or did not answer: Bookie handle is not available")


class LateWords(FileLedgers):
    def close(self) -> Closed:
        raise BrokerError("BookKeeper refused or did not answer: Bookie handle is not available")


@pytest.mark.parametrize("kind", [SmallFrames, LateWords])
def test_an_error_of_bookies_names_the_largest_entry(tmp_path: Path, kind: type[FileLedgers]) -> None:
    """Bookies do not say which entry was too large for them."""
    numbered = NumberedRange(0, EntryRange(None, MessageId(5, 2), 1))
    whole = view_range(numbered, RoundRules(), DeadPositions(), None)
    view, folder = NewView("topic", MessageId(5, 2), "run"), LedgerFolder(tmp_path, kind)
    with pytest.raises(BrokerError) as caught:
        write_view(folder, view, Listed(), RoundRules(), [whole], Throttles())
    size = len(framed(ENTRIES[1]))
    assert f"not available; the largest entry of the compacted view is 5:1, with {size} bytes" in caught.value.message
    assert f"nettyMaxFrameSizeBytes is more than {size}" in str(caught.value.hint)
    assert folder.ledgers() == []


def test_a_connection_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    """A JVM takes more than a minute to find out that nobody answers. One that is there later is closed."""
    may_open, closed = Event(), Event()

    @contextmanager
    def ledgers() -> Iterator[FileLedgers]:
        yield FileLedgers(tmp_path)
        closed.set()

    def open_ledgers() -> AbstractContextManager[FileLedgers]:
        assert may_open.wait(60)
        return ledgers()

    def interrupted() -> None:
        raise KeyboardInterrupt

    for early in (True, False):
        may_open.clear()
        closed.clear()
        with pytest.raises(KeyboardInterrupt), opened_early(open_ledgers, interrupted) as opened:
            if early:
                raise KeyboardInterrupt
            opened()
        assert not closed.is_set()
        may_open.set()
        assert closed.wait(60)
