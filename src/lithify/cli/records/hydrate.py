"""`lithify hydrate`: fills a table in a file from the lake, and keeps it up to date (C6, C9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, TypeVar

import click

from lithify.cli import parameters
from lithify.cli.ingests import begun_copy, counted, noted
from lithify.cli.invocation import Invocation, verb
from lithify.cli.metrics_options import MetricsAsked, in_turn, metrics_options
from lithify.cli.records.encodings import encodings
from lithify.cli.terminal.drawing import columns
from lithify.cli.terminal.output import say, show
from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import format_json
from lithify.model.settings.units import format_duration, plural
from lithify.reports.page.wording import count

if TYPE_CHECKING:
    from lithify.hydration import HydrateReport
    from lithify.reports.ingest import IngestNote

T = TypeVar("T")

to_option = click.option(
    "--to", required=True, metavar="FILE|sqlite:PATH|duckdb:PATH", help="Where to put the table; the ending counts."
)
continuous_option = click.option(
    "--continuous", is_flag=True, help="Keep the table up to date, until SIGTERM or Ctrl-C."
)


@verb("hydrate")
@parameters.topic
@to_option
@continuous_option
@encodings
@metrics_options
def hydrate(
    invocation: Invocation, topic_name: str, to: str, continuous: bool, encodings: Encodings, metrics: MetricsAsked
) -> None:
    """Fill a table with the latest record of every live key.

    It reads only the lake: `lithify kafka hydrate` also reads what only Kafka has so far. The table has a row for
    every partition and key; deleted keys are not in it.

    In a SQLite file (.db, .sqlite, .sqlite3) and a DuckDB file (.duckdb) it is a table with the name of the
    topic. Rows and position are stored together: the same command continues there, even after it was
    killed. Any other file gets one JSON object per line for each row, and is replaced as a whole at the end.

    \b
    Examples:
      lithify hydrate orders --to orders.db
      lithify hydrate orders --to duckdb:shop.data --continuous
      lithify hydrate orders --to orders.jsonl --encoding base64
    """
    from lithify.hydration import hydrate as hydrate_table
    from lithify.metrics.copy_metrics import hydrate_metrics

    with metrics.served() as meter:
        measured = hydrate_metrics(meter, topic_name)
        begin, notes = partial(invocation.open_whole_topic, topic_name), measured.note
        beginning = begun_table(invocation, begin, continuous=continuous, notes=notes)
        if beginning is None:
            return
        topic, stopped = beginning
        with counted(f"{topic.name} → {to}", stopped) as (tell, stops):
            report = hydrate_table(
                topic,
                to,
                continuous=continuous,
                lines=partial(format_json, encodings=encodings, topic=topic.name),
                tell=in_turn(measured.records, tell),
                notes=in_turn(measured.note, noted(invocation)),
                stops=stops,
            )
    if not invocation.printed(report):
        print_hydrated(report)


def begun_table(
    invocation: Invocation, begin: Callable[[], T], *, continuous: bool, notes: Callable[[IngestNote], object]
) -> tuple[T, Event | None] | None:
    """What `begin` returns; of a table that is kept up to date also what is set once that is to end.

    Such a one waits for as long as the catalog is away, which `notes` gets to know; None if a signal came before.
    """
    return begun_copy(invocation, begin, waits=True, notes=notes) if continuous else (begin(), None)


def print_hydrated(report: HydrateReport) -> None:
    rows = [tuple(map(count, (log.partition, log.offset, log.lag))) for log in report.logs]
    show(columns(("PARTITION", "READ TO", "LAG"), rows))
    how = "continued with" if report.resumed else "filled from"
    say(f"{report.to}: {how} {plural(report.records, 'record')} in {format_duration(report.duration_ms)}")
