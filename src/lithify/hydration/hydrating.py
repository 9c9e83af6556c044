"""Fills a table with the latest record of every live key, and keeps it up to date (C6, C9, C49).

    lake ─► what a cluster has more, if there is one, up to its end now ─► the end, or with `continuous` what comes

A consumer reads (`service/snapshot/lake_and_live.py`); the table stores its position in the transaction of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from lithify.errors import BrokerError, LithifyError, LogTruncatedError, RefusedError
from lithify.hydration.filling import CHANGE_MS, Filling, Turn
from lithify.hydration.lines_file import Lines, write_lines
from lithify.hydration.rows import StoredTable, TableName
from lithify.hydration.sqlite_table import TEMPORARY, SqliteTable
from lithify.hydration.targets import Kind, Target, parse_target
from lithify.model.names import TopicName
from lithify.ports.source import StopAsked
from lithify.ports.store import Warehouse
from lithify.service.snapshot.changes import Changes
from lithify.service.snapshot.collector import collector_at_rest
from lithify.service.snapshot.consumer_narration import FollowedLog, Following, Narration, TellNote
from lithify.service.snapshot.lake_and_live import LakeAndLive
from lithify.service.snapshot.live import Reached
from lithify.service.snapshot.position import PositionText, StoredPosition

AGAIN_S = 1.0
"""Between two tries where the warehouse is away."""

Tell = Callable[[int], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HydrateReport(Following):
    """The result of `hydrate`. `resumed`: it continued an earlier run; `records`: that this run has read.

    `source` is the topic that was read last: of the cluster, or of the lake. `caught_up`: the table has all that the
    source had when the run began; a file is replaced only then.
    """

    topic: str
    source: str
    to: str
    resumed: bool
    caught_up: bool
    records: int
    logs: tuple[FollowedLog, ...]
    duration_ms: int


class Patience(Protocol):
    """What a run does about a source that fails it."""

    @property
    def continuous(self) -> bool:
        """Whether the run continues at the end."""

    def after(self, error: BrokerError) -> None:
        """Returns when it is time for the next try. Raises the error if there is to be none."""
        ...

    def succeeded(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Where:
    """What is filled. `lines` makes lines of Arrow tables."""

    to: str
    target: Target
    lines: Lines | None


def checked_where(to: str, lines: Lines | None, *, continuous: bool) -> Where:
    """Raises `RefusedError` for a target that cannot be filled so."""
    target = parse_target(to)
    if continuous and not target.keeps_position:
        raise RefusedError(
            f"{to}: a file of JSON lines is written once and cannot be kept up to date",
            hint="remove --continuous, or give a SQLite or DuckDB file, such as orders.db or orders.duckdb",
        )
    if lines is None and target.kind is Kind.LINES:
        raise RefusedError(f"{to} is neither a SQLite nor a DuckDB file", hint="write sqlite:PATH or duckdb:PATH")
    return Where(to, target, lines)


@dataclass(slots=True)
class Hydration:
    """One run. `stops` is asked whether to end, `waits_ms` is for other programs that have the file, None for ever."""

    warehouse: Warehouse
    name: TopicName
    where: Where
    positions: PositionText
    waits_ms: int | None
    stops: Callable[[], bool]
    tell: Tell
    notes: TellNote
    narration: Narration = field(init=False)
    resumed: bool = False
    records: int = 0
    caught_up: bool = False
    logs: tuple[FollowedLog, ...] = ()
    _begun_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self._begun_ms = self.warehouse.clock.monotonic_ms()
        self.narration = Narration(str(self.name), self.where.to, "stored", self.warehouse.clock, self.notes)

    def run(self, consumer_at: Callable[[StoredPosition], LakeAndLive], patience: Patience) -> None:
        """Fills the table by a consumer that starts at its position. Raises `StopAsked` if it is to end before that."""
        with closing(self._filling(patience)) as filling:
            self.resumed = filling.table.position != ""
            self._fill(filling, consumer_at, patience)
            if self.caught_up:
                self._write(filling.table)

    def report(self) -> HydrateReport:
        duration_ms = self.warehouse.clock.monotonic_ms() - self._begun_ms
        source, to = self.positions.source_topic, self.where.to
        return HydrateReport(
            str(self.name), source, to, self.resumed, self.caught_up, self.records, self.logs, duration_ms
        )

    def _write(self, table: StoredTable) -> None:
        """Where the target is a file of lines, the table, which is in none so far."""
        if self.where.target.kind is Kind.LINES:
            assert self.where.lines is not None and isinstance(table, SqliteTable)
            write_lines(table.rows(), self.where.target.path, self.where.lines)

    def _filling(self, patience: Patience) -> Filling:
        """Opens the table, as soon as no other program has it."""
        state = self._retried(lambda: self.warehouse.store.load(self.name), patience)
        changes, clock = Changes(state.settings), self.warehouse.clock
        turn = Turn(self.narration, clock, self.stops, self.waits_ms)
        table = turn.wait(lambda: open_table(self.where.target, self.name.topic, changes.strategy))
        return Filling(table, changes, self.positions, turn, clock)

    def _fill(self, filling: Filling, consumer_at: Callable[[StoredPosition], LakeAndLive], patience: Patience) -> None:
        path = self.where.target.path
        hint = f"drop the table {self.name.topic} in {path} and hydrate the topic again"
        start = StoredPosition({})
        if position := filling.table.position:
            start = filling.positions.parsed(position, str(path), hint)
        try:
            with self._retried(lambda: consumer_at(start), patience) as consumer:
                self._follow(consumer, filling, patience, new=not position)
        except LogTruncatedError as error:
            raise LogTruncatedError(error.message, hint=hint) from error

    def _follow(self, consumer: LakeAndLive, filling: Filling, patience: Patience, *, new: bool) -> None:
        ends = self._retried(consumer.ends, patience)
        self._see(consumer, ends)
        self.narration.begins(self.logs, new=new)
        done = False
        with suppress(StopAsked):  # what was read is stored all the same
            while not self.stops():
                done = done or consumer.has_read(ends)
                if done and not patience.continuous:
                    break
                try:
                    with collector_at_rest():
                        self._step(consumer, filling, patience)
                except LithifyError as error:
                    self._after(error, patience)
        filling.store(consumer.position())
        self.caught_up = done
        self._see(consumer, {})

    def _retried(self, call: Callable[[], T], patience: Patience) -> T:
        while True:
            if self.stops():
                raise StopAsked
            try:
                answer = call()
            except LithifyError as error:
                self._after(error, patience)
            else:
                self.narration.warehouse.answers()
                return answer

    def _after(self, error: LithifyError, patience: Patience) -> None:
        """Returns when it is time for the next try. Raises the error if there is to be none."""
        if isinstance(error, BrokerError):
            patience.after(error)
        elif patience.continuous and error.is_outage:
            self.narration.warehouse.away(error)
            while not self.stops() and self._is_away():
                self.warehouse.clock.sleep(AGAIN_S)
        else:
            raise error

    def _is_away(self) -> bool:
        """Whether the warehouse is: what a cluster has is read without it, so it would be asked again much later."""
        try:
            self.warehouse.store.load(self.name)
        except LithifyError as error:
            return error.is_outage  # any other one is for those who need the warehouse
        return False

    def _step(self, consumer: LakeAndLive, filling: Filling, patience: Patience) -> None:
        """Takes the next records and stores them in time."""
        taken = consumer.take(CHANGE_MS / 1000)
        self.narration.warehouse.answers()
        filling.put(taken)
        if filling.is_due():
            filling.store(consumer.position())
        if taken:
            patience.succeeded()
            self.records += len(taken)
            self.tell(len(taken))
        elif consumer.caught_up():
            patience.succeeded()
            filling.store(consumer.position())
            if patience.continuous:
                filling.table.release()
                self.narration.waiting(lambda: self._see(consumer, {}))
        self.narration.progress(len(taken), lambda: self._see(consumer, consumer.ends()))

    def _see(self, consumer: LakeAndLive, ends: Mapping[int, Reached]) -> Sequence[FollowedLog]:
        """How far it is; a log without an end here is read to its end."""
        known = {log.partition: log.end_offset for log in self.logs} | {p: end.offset for p, end in ends.items()}
        self.logs = tuple(
            FollowedLog(p, offset, max(offset, known.get(p, offset)))
            for p, offset in sorted(consumer.positions().items())
        )
        return self.logs


def open_table(target: Target, name: str, strategy: str) -> StoredTable:
    """The table of that name there; of a file of JSON lines, one that is gone with its connection."""
    match target.kind:
        case Kind.SQLITE:
            return SqliteTable(TableName(target.path, name, strategy))
        case Kind.DUCKDB:
            from lithify.hydration.duckdb_table import DuckDbTable  # starts DuckDB

            return DuckDbTable(TableName(target.path, name, strategy))
        case Kind.LINES:
            return SqliteTable(TableName(TEMPORARY, "rows", strategy))
