"""`lithify consume --group`: prints what a member of a group reads, and commits what was printed (C58).

    print ──► flush ──► commit        a signal meanwhile takes effect after the record that is being printed,
                                      and what was printed whole is committed first

What is printed was printed at least once: after a kill, what was printed since the last commit comes again.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from lithify.cli.terminal.output import flush, put, say_error
from lithify.cli.terminal.watch import pause
from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import format_json
from lithify.errors import CoordinationError, PartitionTakenOverError
from lithify.waits.deadline import Deadline

if TYPE_CHECKING:
    from lithify.coordination.groups.group_reader import GroupReader

AT_ONCE = 1_000
"""Records that are printed whole before a signal takes effect."""
OUTAGE_S = 120.0
"""How long the database may be unusable."""
RETRY_MS = 1_000


class Signals:
    """SIGINT and SIGTERM interrupt at once, but for `held` blocks, which end first."""

    def __init__(self) -> None:
        self.asked = False
        self._held = False

    def take(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if not self._held or self.asked:
            raise KeyboardInterrupt
        self.asked = True

    @contextmanager
    def held(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self.asked:
            raise KeyboardInterrupt


def write_group(reader: GroupReader, most: int | None, encodings: Encodings, topic: str) -> None:
    """Prints records until the member's partitions are read, or endlessly while it follows; up to the given number."""
    printer = _Printer(reader, most, encodings, topic)
    printer.signals.take()
    outage: Deadline | None = None
    with reader:
        while True:
            try:
                printer.print_all()
                return
            except CoordinationError as error:
                outage = outage if outage is not None and not printer.committed else Deadline(OUTAGE_S)
                printer.committed = False
                _wait(error, outage)


def _wait(error: CoordinationError, outage: Deadline) -> None:
    """Raises the error if the database has been unusable for too long."""
    say_error(f"{error}; trying again", error.code)
    try:
        outage.left_s()
    except TimeoutError:
        raise error from None
    pause(RETRY_MS)


class _Printer:
    """Prints batches; `committed` is whether it has committed since that was set to false."""

    def __init__(self, reader: GroupReader, most: int | None, encodings: Encodings, topic: str) -> None:
        self.signals, self.committed = Signals(), False
        self._reader, self._left, self._encodings, self._topic = reader, most, encodings, topic

    def print_all(self) -> None:
        self._commit()  # what was printed before an outage
        if self._left == 0:
            return
        for table in self._reader.batches():
            with self.signals.held():
                self._print(table)
                self._commit()
            if self._left == 0:
                return
        self._commit()

    def _print(self, table: Any) -> None:
        """Prints the records of a batch; after a signal no more than those begun."""
        partition = table.column("partition")[0].as_py()
        wanted = table if self._left is None else table.slice(0, self._left)
        printed = 0
        while printed < wanted.num_rows and not self.signals.asked:
            some = wanted.slice(printed, AT_ONCE)
            for lines in format_json(some, self._encodings, self._topic):
                put(lines)
            flush()
            printed += some.num_rows
        if printed < table.num_rows:
            self._reader.seek(partition, table.column("offset")[printed].as_py())
        if self._left is not None:
            self._left -= printed

    def _commit(self) -> None:
        try:
            self._reader.commit()
        except PartitionTakenOverError as error:
            say_error(str(error), error.code)
        self.committed = True
