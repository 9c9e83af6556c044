"""Writes views on Spark: one task per partition, since a ledger has one writer.

    bitmaps of a key pass ─┐
    write task ────────────┴─► reads the entries, drops, appends to a ledger ─► what was written, or an error

A task that Spark starts again writes another ledger. The driver names at most one of them to the broker, and has
the others deleted (C55).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from lithify.columnar.files.spilled import spill_file
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.rewrite import Throttles
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.errors import EngineError, LithifyError
from lithify.ports.pulsar.views import WrittenView
from lithify.pulsar.rounds.entry_reader import EntriesRead, EntryReader
from lithify.pulsar.rounds.kept import KeptEntries
from lithify.pulsar.rounds.one_task import NeedsShuffleError, OneTaskRound
from lithify.pulsar.rounds.view_ledger import opened_early, write_view
from lithify.pulsar.rounds.view_writing import ViewRange, view_range
from lithify.spark.pulsar import round_tasks
from lithify.spark.pulsar.round_tasks import BLOB, KIND, NUMBER, UNIT, TaskTools, WriteTask
from lithify.spark.tasks import PAYLOAD, Batches, columns, in_worker, is_first_attempt, placed

OUTCOME = "outcome"
_RESULT = pa.schema([(UNIT, pa.int32()), (OUTCOME, pa.binary())])


@dataclass(frozen=True, slots=True)
class NeedsShuffle:
    """The outcome of a task that could not judge its entries itself. `sole`: no attempt can have left a ledger."""

    sole: bool


Outcome = WrittenView | NeedsShuffle | LithifyError


def not_sole(outcome: Outcome) -> Outcome:
    """The same of a view of which another attempt may have left a ledger."""
    return outcome if isinstance(outcome, LithifyError) else replace(outcome, sole=False)


def written_views(work: DataFrame, key_results: DataFrame | None, units: int, tools: TaskTools) -> DataFrame:
    """A lazy frame of outcomes. `work` are rows of `WriteTask`, placed by unit; `key_results` come from a key pass."""
    together = work if key_results is None else work.unionByName(key_results, allowMissingColumns=True)
    names = (PAYLOAD,) if key_results is None else (PAYLOAD, KIND, NUMBER, BLOB)
    return placed(together, units).select(*names).mapInArrow(partial(_write, tools=tools), from_arrow_schema(_RESULT))


def collect_outcomes(results: DataFrame) -> Mapping[int, Outcome]:
    """Runs the job; the outcomes by unit. Raises errors of Spark."""
    table = results.select(UNIT, OUTCOME).toArrow()
    return {unit: pickle.loads(outcome) for unit, outcome in columns(iter(table.to_batches()), UNIT, OUTCOME)}


@dataclass(slots=True)
class _KeyResults:
    """What the key pass has found of one partition. Bitmaps remain as they came until their range is written."""

    dead: dict[int, list[bytes]] = field(default_factory=dict)
    read: dict[int, EntriesRead] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    error: LithifyError | None = None

    def add(self, kind: str, number: int, blob: bytes) -> None:
        match kind:
            case round_tasks.DEAD:
                self.dead.setdefault(number, []).append(blob)
            case round_tasks.READ:
                self.read[number] = pickle.loads(blob)
            case round_tasks.TALLY:
                self.tally.add(pickle.loads(blob))
            case _:
                self.error = self.error or pickle.loads(blob)

    def of(self, number: int) -> DeadPositions | None:
        positions: DeadPositions | None = None
        for blob in self.dead.get(number, ()):
            part = DeadPositions.of_bytes(blob)
            positions = part if positions is None else positions.with_part(part)
        return positions


@in_worker
def _write(batches: Batches, tools: TaskTools) -> Batches:
    work: list[WriteTask] = []
    key_results = _KeyResults()
    for batch in batches:
        if KIND not in batch.schema.names:
            work += [pickle.loads(payload) for (payload,) in columns(iter([batch]), PAYLOAD)]
            continue
        for payload, kind, number, blob in columns(iter([batch]), PAYLOAD, KIND, NUMBER, BLOB):
            if payload is not None:
                work.append(pickle.loads(payload))
            else:
                key_results.add(kind, number, blob)
    for task in work:  # one at most: each partition of the topic has a Spark partition of its own
        outcome = pickle.dumps(_outcome(task, key_results, tools))
        yield pa.RecordBatch.from_pylist([{UNIT: task.unit, OUTCOME: outcome}], schema=_RESULT)


def _outcome(task: WriteTask, key_results: _KeyResults, tools: TaskTools) -> Outcome:
    throttles = tools.rates.throttles()
    try:
        reader = tools.reader_of(task.view.partition, task.small_entries)
        with spill_file() as file, opened_early(tools.open_ledgers) as open_ledgers:
            if task.finder is not None:
                reader = KeptEntries(reader, file)
            ranges = _ranges(task, key_results, reader, throttles)
            written = write_view(open_ledgers, task.view, reader, task.rules, ranges, throttles)
    except NeedsShuffleError as error:
        return NeedsShuffle(_is_sole_attempt(tools) and not error.left_ledger)
    except LithifyError as error:
        return error
    # All input has been read by now, so that no retry for lost input can have made a ledger.
    return replace(written, sole=_is_sole_attempt(tools))


def _is_sole_attempt(tools: TaskTools) -> bool:
    """Whether no other attempt of this task is or was there, as far as a task can tell."""
    return is_first_attempt() and not tools.speculates


def _ranges(
    task: WriteTask, key_results: _KeyResults, reader: EntryReader, throttles: Throttles
) -> Iterable[ViewRange]:
    if task.finder is not None:
        alone = OneTaskRound(task.finder.memory_bytes, task.finder.seed)
        return alone.judge(reader, task.rules, task.ranges, throttles.read)
    if key_results.error is not None:
        raise key_results.error
    tally = key_results.tally
    if tally.compared != tally.dirty_keyed or len(key_results.read) != len(task.ranges):
        raise EngineError(
            f"{task.view.partition}: {tally.dirty_keyed} messages have keys, but {tally.compared} were compared",
            hint="run the same version of Lithify on all workers; nothing was changed",
        )
    return (
        view_range(one, task.rules, key_results.of(one.number), key_results.read[one.number]) for one in task.ranges
    )
