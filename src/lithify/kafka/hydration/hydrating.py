"""Fills a table with the latest record of every live key: from the lake, and then live from Kafka (C1, C9, C49).

    lake ─► Kafka, up to where it ends now ─► the end, or with `continuous` everything that comes

A consumer reads (`snapshot/consumer.py`); the table stores its position in the transaction of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lithify.errors import BrokerError, LogTruncatedError, RefusedError
from lithify.hydration.filling import CHANGE_MS, Filling, Turn
from lithify.hydration.lines_file import Lines, write_lines
from lithify.hydration.rows import StoredTable, TableName
from lithify.hydration.sqlite_table import TEMPORARY, SqliteTable
from lithify.hydration.targets import Kind, Target, parse_target
from lithify.kafka.consumer.live_topic import KafkaTopic
from lithify.kafka.pulse import Pulse, Retries
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.first_look import ASKED_S, asking, look_at
from lithify.ports.source import StopAsked
from lithify.reports.report import with_lags
from lithify.service.documents import source_of
from lithify.snapshot.changes import Changes
from lithify.snapshot.consumer import LakeAndLive
from lithify.snapshot.live import Reached
from lithify.snapshot.narration import FollowedLog, KafkaNote, Narration, TellNote
from lithify.snapshot.position import PositionText, StartAt, StoredPosition

if TYPE_CHECKING:
    from lithify.api.topic import Topic


@dataclass(frozen=True, slots=True)
class HydrateReport:
    """The result of `hydrate`. `resumed`: it continued an earlier run; `records`: that this run has read.

    `caught_up`: the table has all that Kafka had when the run began; a file is replaced only then.
    """

    topic: str
    source: str
    to: str
    resumed: bool
    caught_up: bool
    records: int
    logs: tuple[FollowedLog, ...]
    duration_ms: int

    def to_json(self) -> dict[str, Any]:
        return with_lags(self)


def hydrate(  # noqa: PLR0913 - the flags of the verb, by name
    topic: Topic,
    conf: Mapping[str, Any],
    to: str,
    *,
    kafka_topic: str | None = None,
    continuous: bool = False,
    timeout_s: float = 30.0,
    lines: Lines | None = None,
    tell: Callable[[int], None] = lambda _records: None,
    notes: TellNote = lambda _note: None,
    stops: Callable[[], bool] = lambda: False,
) -> HydrateReport:
    """Fills the table of `topic` in a SQLite or DuckDB file with the latest record of every live key.

    It reads the lake, then Kafka up to its end, with `continuous` until `stops()`, waiting where the cluster does not
    answer. Rows and position are stored together: the next call continues there, after a crash too. `to` is
    `sqlite:PATH` or `duckdb:PATH`, or a path that ends like one; any other is a file of JSON lines, which `lines`
    makes of Arrow tables, and which is replaced at the end as a whole. `kafka_topic` is by default what the topic
    is a copy of. `tell` gets the number of records read, `notes` what else there is to say, from a thread of its
    own about outages.

    Raises `RefusedError` for a target that it cannot use, `LogTruncatedError` where the table cannot be continued,
    and what `SnapshotConsumer` raises.
    """
    target = parse_target(to)
    if continuous and not target.keeps_position:
        raise RefusedError(
            f"{to}: a file of JSON lines is written once, and cannot be kept up to date",
            hint="leave --continuous out, or name a SQLite or DuckDB file: orders.db, orders.duckdb",
        )
    if lines is None and target.kind is Kind.LINES:
        raise RefusedError(f"{to} is neither a SQLite nor a DuckDB file", hint="sqlite:PATH or duckdb:PATH")
    name = kafka_topic or _source_name(topic)
    run = _Run(topic, name, to, target, Cluster(conf, timeout_s, stops), tell, notes)
    return run.run(conf, lines, continuous=continuous)


@dataclass(slots=True)
class _Run:
    topic: Topic
    source: str
    to: str
    target: Target
    cluster: Cluster
    tell: Callable[[int], None]
    notes: TellNote
    narration: Narration = field(init=False)
    records: int = 0
    caught_up: bool = False
    logs: tuple[FollowedLog, ...] = ()

    def __post_init__(self) -> None:
        self.narration = Narration(self.topic.name, self.to, "stored", self.topic.warehouse.clock, self.notes)

    def run(self, conf: Mapping[str, Any], lines: Lines | None, *, continuous: bool) -> HydrateReport:
        clock, stops = self.topic.warehouse.clock, self.cluster.stops
        begun_ms = clock.monotonic_ms()
        resumed = False
        with suppress(StopAsked):
            self.notes(KafkaNote("asking", asking(self.cluster)))
            look_at(Cluster(conf, min(ASKED_S, self.cluster.timeout_s), stops), self.source)
            with Pulse(conf, self.source, clock, self.notes) as pulse:
                retries = Retries(pulse, continuous, clock, stops)
                with closing(self._filling(retries)) as filling:
                    resumed = filling.table.position != ""
                    self._fill(filling, retries)
                    if self.caught_up:
                        self._write(filling.table, lines)
        duration_ms = clock.monotonic_ms() - begun_ms
        return HydrateReport(
            self.topic.name, self.source, self.to, resumed, self.caught_up, self.records, self.logs, duration_ms
        )

    def _write(self, table: StoredTable, lines: Lines | None) -> None:
        """Where the target is a file of lines, the table, which is in none so far."""
        if self.target.kind is Kind.LINES:
            assert lines is not None and isinstance(table, SqliteTable)
            write_lines(table.rows(), self.target.path, self.topic.warehouse.clock.new_id(), lines)

    def _filling(self, retries: Retries) -> Filling:
        """Opens the table, as soon as no other program has it."""
        clock, stops = self.topic.warehouse.clock, self.cluster.stops
        changes = Changes(self.topic.state().settings)
        waits_ms = None if retries.continuous else round(self.cluster.timeout_s * 1000)
        turn = Turn(self.narration, clock, stops, waits_ms)
        table = turn.wait(lambda: open_table(self.target, self.topic.topic_name.topic, changes.strategy))
        return Filling(table, changes, PositionText(self.topic.topic_name.stored, self.source), turn, clock)

    def _fill(self, filling: Filling, retries: Retries) -> None:
        hint = f"drop the table {self.topic.topic_name.topic} in {self.target.path}, and hydrate it again"
        start = StoredPosition({})
        if found := filling.table.position:
            start = filling.positions.parsed(found, str(self.target.path), hint)
        try:
            with self._consumer(start, retries) as consumer:
                self._follow(consumer, filling, retries, new=not found)
        except LogTruncatedError as error:
            raise LogTruncatedError(error.message, hint=hint) from error

    def _consumer(self, start: StoredPosition, retries: Retries) -> LakeAndLive:
        warehouse = self.topic.warehouse
        while True:
            self.cluster.check_stop()
            try:
                live = KafkaTopic(self.cluster, self.source, warehouse.clock)
                return LakeAndLive(warehouse, self.topic.topic_name, live, None, StartAt(start))
            except BrokerError as error:
                retries.after(error)

    def _follow(self, consumer: LakeAndLive, filling: Filling, retries: Retries, *, new: bool) -> None:
        ends = self._ends(consumer, retries)
        self._see(consumer, ends)
        self.narration.begins(self.logs, new=new)
        done = False
        with suppress(StopAsked):  # what was read is stored all the same
            while not self.cluster.stops():
                done = done or consumer.has_read(ends)
                if done and not retries.continuous:
                    break
                try:
                    self._step(consumer, filling, retries)
                except BrokerError as error:
                    retries.after(error)
        filling.store(consumer.position())
        self.caught_up = done
        self._see(consumer, {})

    def _ends(self, consumer: LakeAndLive, retries: Retries) -> Mapping[int, Reached]:
        while True:
            self.cluster.check_stop()
            try:
                return consumer.ends()
            except BrokerError as error:
                retries.after(error)

    def _step(self, consumer: LakeAndLive, filling: Filling, retries: Retries) -> None:
        """Takes the next records and stores them in time."""
        taken = consumer.take(CHANGE_MS / 1000)
        filling.put(taken)
        if filling.is_due():
            filling.store(consumer.position())
        if taken:
            retries.succeeded()
            self.records += len(taken)
            self.tell(len(taken))
        elif consumer.caught_up():
            retries.succeeded()
            filling.store(consumer.position())
            if retries.continuous:
                filling.table.release()
                self.narration.waiting(lambda: self._see(consumer, {}))
        self.narration.progress(len(taken), lambda: self._see(consumer, consumer.ends()))

    def _see(self, consumer: LakeAndLive, ends: Mapping[int, Reached]) -> tuple[FollowedLog, ...]:
        """How far it is; a log without an end here is read to its end."""
        known = {log.partition: log.end_offset for log in self.logs} | {p: end.offset for p, end in ends.items()}
        self.logs = tuple(
            FollowedLog(p, offset, max(offset, known.get(p, offset)))
            for p, offset in sorted(consumer.positions().items())
        )
        return self.logs


def _source_name(topic: Topic) -> str:
    copied = source_of(topic.warehouse.store, topic.state())
    return topic.topic_name.topic if copied is None else copied.name


def open_table(target: Target, name: str, strategy: str) -> StoredTable:
    """The table of that name there; of a file of JSON lines, one that is gone with its connection."""
    match target.kind:
        case Kind.SQLITE:
            return SqliteTable(TableName(target.path, name, strategy))
        case Kind.DUCKDB:
            from lithify.hydration.duckdb_table import DuckDbTable  # starts DuckDB

            return DuckDbTable(TableName(target.path, name, strategy))
        case Kind.LINES:
            return SqliteTable(TableName(TEMPORARY, name, strategy))
