"""What the tasks of a Pulsar round are given, and the rows that are sent between them.

rows        partitions, ranges, blocks of keys, bitmaps       Spark writes them to disk
TaskTools   clients with their credentials, rates             only in the closures of tasks
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.pace import Throttle
from lithify.columnar.rewrite import Throttles
from lithify.pulsar.rounds.entry_reader import ReaderOf
from lithify.pulsar.rounds.entry_scan import NumberedRange
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.pulsar.rounds.view_ledger import NewView, OpenLedgers
from lithify.spark.tasks import PART, Pace

UNIT = "unit"
KIND = "kind"
NUMBER = "number"
BLOB = "blob"

KEYS, UNSETTLED = "keys", "unsettled"
DEAD, READ, TALLY, ERROR = "dead", "read", "tally", "error"

SENT = pa.schema(
    [
        pa.field(PART, pa.int32()),
        pa.field(UNIT, pa.int32()),
        pa.field(KIND, pa.string()),
        pa.field(NUMBER, pa.int64()),
        pa.field(BLOB, pa.binary()),
    ]
)
"""What one task sends to the task of another Spark partition, by kind:

    keys            a block of keys; the number is its place in the order of all
    unsettled       a pickled `Unsettled`
    dead            `DeadPositions` of the range of that number
    read            the pickled `EntriesRead` of it
    tally, error    pickled
"""


@dataclass(frozen=True, slots=True)
class SharedRates:
    """Bytes per second that each of the tasks of one kind may read and write; None is unlimited."""

    read: float | None
    write: float | None
    pace: Pace

    def throttles(self) -> Throttles:
        """New throttles for one task."""
        clock, sleep = self.pace.clock, self.pace.sleep
        return Throttles(
            read=Throttle(lambda: self.read, clock, sleep).acquire,
            write=Throttle(lambda: self.write, clock, sleep).acquire,
        )


@dataclass(frozen=True, slots=True)
class TaskTools:
    """Part of every task's closure. `speculates`: Spark may run a task twice at once."""

    reader_of: ReaderOf
    open_ledgers: OpenLedgers
    rates: SharedRates
    speculates: bool


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Sends the keys of one range to the hash ranges of its partition, whose Spark partitions are `parts`."""

    unit: int
    partition: str
    small_entries: bool
    one: NumberedRange
    rules: RoundRules
    parts: tuple[int, ...]
    finder: WinnerFinder


@dataclass(frozen=True, slots=True)
class FindTask:
    """Finds what remains of one hash range, number `index` of `count`, of the keys of `ranges` ranges of entries."""

    unit: int
    index: int
    count: int
    ranges: int
    rules: RoundRules
    finder: WinnerFinder


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Writes the view of one partition. With a finder it judges the entries itself (`rounds/alone.py`)."""

    unit: int
    view: NewView
    ranges: tuple[NumberedRange, ...]
    small_entries: bool
    rules: RoundRules
    finder: WinnerFinder | None = None


def sent(part: int, unit: int, kind: str, number: int, blob: bytes) -> pa.RecordBatch:
    """One row of `SENT`."""
    return pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in zip((part, unit, kind, number, blob), SENT, strict=True)],
        schema=SENT,
    )


def pickled(part: int, unit: int, kind: str, number: int, value: Any) -> pa.RecordBatch:
    return sent(part, unit, kind, number, pickle.dumps(value))
