"""Fills a table from the lake alone (C6, C9)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lithify.errors import BrokerError
from lithify.hydration.hydrating import HydrateReport, Hydration, checked_where
from lithify.hydration.lines_file import Lines
from lithify.ports.source import StopAsked
from lithify.ports.topic import OpenTopic
from lithify.service.snapshot.consumer_narration import TellNote
from lithify.service.snapshot.lake_and_live import LakeAndLive
from lithify.service.snapshot.lake_consumer import SYSTEM, LakeAlone
from lithify.service.snapshot.position import PositionText, StartAt, StoredPosition

BUSY_MS = 30_000
"""How long it waits for another program that has the file."""


@dataclass(frozen=True, slots=True)
class NoPatience:
    """See `Patience`: the lake answers, or the run ends."""

    continuous: bool

    def after(self, error: BrokerError) -> None:
        raise error

    def succeeded(self) -> None: ...


def hydrate(  # noqa: PLR0913 - the flags of the verb, by name
    topic: OpenTopic,
    to: str,
    *,
    continuous: bool = False,
    lines: Lines | None = None,
    tell: Callable[[int], None] = lambda _records: None,
    notes: TellNote = lambda _note: None,
    stops: Callable[[], bool] = lambda: False,
) -> HydrateReport:
    """Fills the table of `topic` in a SQLite or DuckDB file with the latest record of every live key.

    It reads the lake, with `continuous` also what is appended, until `stops()`. Rows and position are stored together:
    the next call continues there, after a crash too. `to` is `sqlite:PATH` or `duckdb:PATH`, or a path that ends like
    one. Any other is a file of JSON lines, which `lines` makes of Arrow tables, and which is replaced at the end as a
    whole. `tell` gets the number of records read, and `notes` all other notes.

    Raises `RefusedError` for a target that it cannot use, `LogTruncatedError` if the table cannot be continued.
    """
    where, warehouse, name = checked_where(to, lines, continuous=continuous), topic.warehouse, topic.topic_name
    positions = PositionText(name.stored, name.stored, SYSTEM)
    run = Hydration(warehouse, name, where, positions, None if continuous else BUSY_MS, stops, tell, notes)

    def consumer_at(start: StoredPosition) -> LakeAndLive:
        return LakeAlone(warehouse, name, None, StartAt(start))

    with suppress(StopAsked):
        run.run(consumer_at, NoPatience(continuous))
    return run.report()
