"""Writes a view into a new ledger, and deletes that ledger if anything goes wrong (C55)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Final, Protocol

from lithify.columnar.rewrite import Throttles
from lithify.errors import BrokerError, EngineError, LithifyError
from lithify.model.message import MessageId
from lithify.ports.pulsar.views import WrittenView
from lithify.pulsar.format.framing import unframed
from lithify.pulsar.rounds.entry_reader import EntryReader
from lithify.pulsar.rounds.one_task import NeedsShuffleError
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.pulsar.rounds.view_writing import ViewRange, ViewWriting
from lithify.waits.overlap import one_behind


class ClosedLedger(Protocol):
    """What BookKeeper says of a ledger that was closed."""

    @property
    def entries(self) -> int: ...


class LedgerWriter(Protocol):
    """Writes one ledger at a time. Calls raise `BrokerError`."""

    def create(self, topic: str, horizon: MessageId, run_id: str) -> int: ...
    def append(self, entries: Sequence[bytes]) -> None: ...
    def close(self) -> ClosedLedger: ...
    def delete(self, ledger: int) -> None: ...


OpenLedgers = Callable[[], AbstractContextManager[LedgerWriter]]
"""Connects to BookKeeper. Goes to tasks, so it pickles."""


WAIT_S: Final = 0.2
"""Between two calls of what waits."""


@contextmanager
def opened_early(open_ledgers: OpenLedgers, waiting: Callable[[], None] = lambda: None) -> Iterator[OpenLedgers]:
    """Begins to connect to BookKeeper, which takes seconds, while the caller finds out what to write.

    `waiting` is called again and again while that is waited for; what it raises ends the wait. An unused connection is
    closed once it is there, without a wait: without a response this takes more than a minute.
    """
    opening, used = Future[AbstractContextManager[LedgerWriter]](), False
    Thread(target=_open, args=(open_ledgers, opening), daemon=True).start()

    def opened() -> AbstractContextManager[LedgerWriter]:
        nonlocal used
        while not wait([opening], WAIT_S).done:
            waiting()
        ledgers = opening.result()
        used = True
        return ledgers

    try:
        yield opened
    finally:
        if not used:
            opening.add_done_callback(_closed)


def _open(open_ledgers: OpenLedgers, opening: Future[AbstractContextManager[LedgerWriter]]) -> None:
    try:
        opening.set_result(open_ledgers())
    except BaseException as error:
        opening.set_exception(error)


def _closed(opening: Future[AbstractContextManager[LedgerWriter]]) -> None:
    if opening.exception() is None:
        with opening.result():
            pass


@dataclass(frozen=True, slots=True)
class NewView:
    """The view to write: a partition's, up to an entry, by a run."""

    partition: str
    horizon: MessageId
    run_id: str


def write_view(
    open_ledgers: OpenLedgers,
    view: NewView,
    reader: EntryReader,
    rules: RoundRules,
    ranges: Iterable[ViewRange],
    throttles: Throttles,
) -> WrittenView:
    """Writes a view from its ranges, in order. Raises what reader, ranges and ledger raise."""
    with open_ledgers() as ledgers:
        ledger = ledgers.create(view.partition, view.horizon, view.run_id)
        try:
            filling = _Filling(ledgers)
            with one_behind(filling.append) as append:
                writing = ViewWriting(reader, rules, append, throttles)
                for one in ranges:
                    writing.write(one)
            stored, counts = filling.close().entries, writing.counts
            if stored != counts.entries_out:
                raise EngineError(
                    f"{view.partition}: ledger {ledger} has {stored} entries, but {counts.entries_out} were written",
                    hint="nothing was changed; run it again",
                )
        except BaseException as error:
            try:
                ledgers.delete(ledger)
            except LithifyError:  # the end of this round, or the next one deletes it
                if isinstance(error, NeedsShuffleError):
                    error.left_ledger = True
            raise
    return WrittenView(
        ledger,
        messages_in=counts.messages_in,
        messages_out=counts.messages_out,
        entries_in=counts.entries_in,
        entries_out=counts.entries_out,
        bytes_in=counts.bytes_in,
        bytes_out=counts.bytes_out,
        damaged_entries=counts.damage.count,
        damaged_named=tuple(counts.damage.named),
    )


@dataclass(slots=True)
class _Filling:
    """Fills the ledger that is open. Errors name the largest entry so far: bookies refuse one that is too large."""

    ledgers: LedgerWriter
    largest: bytes = b""

    def append(self, entries: Sequence[bytes]) -> None:
        self.largest = max((self.largest, *entries), key=len)
        with self._naming():
            self.ledgers.append(entries)

    def close(self) -> ClosedLedger:
        with self._naming():
            return self.ledgers.close()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except BrokerError as error:
            if not self.largest:
                raise
            place, size = unframed(self.largest).place, len(self.largest)
            raise BrokerError(
                f"{error.message}; the largest entry of the compacted view is {place}, with {size} bytes",
                hint=f"check that the bookies run, and that their nettyMaxFrameSizeBytes is more than {size}",
            ) from error
