"""`lithify kafka hydrate`: fills a table in a file from the lake, and from Kafka what the lake has not (C1, C9)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lithify.cli import parameters
from lithify.cli.ingests import counted, noted
from lithify.cli.invocation import Invocation, verb
from lithify.cli.kafka.settings import kafka_options, kafka_settings, settings_used, wait_option
from lithify.cli.metrics_options import MetricsAsked, in_turn, metrics_options
from lithify.cli.records.encodings import encodings
from lithify.cli.records.hydrate import begun_table, continuous_option, print_hydrated, to_option
from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import format_json

if TYPE_CHECKING:
    from lithify.api.topic import Topic


@verb("hydrate")
@parameters.topic
@kafka_options
@to_option
@continuous_option
@wait_option
@encodings
@metrics_options
def hydrate(
    invocation: Invocation,
    topic_name: str,
    to: str,
    continuous: bool,
    timeout_ms: int,
    encodings: Encodings,
    **kafka: Any,
) -> None:
    """Fill a table with the latest record of every live key.

    It reads the compacted records in the lake, then the newer records in Kafka, up to the end that Kafka has
    when it begins. The table has a row for every partition and key; deleted keys are not in it.

    In a SQLite file (.db, .sqlite, .sqlite3) and a DuckDB file (.duckdb) it is a table with the name of the
    topic. Rows and position are stored together: the same command continues there, even after it was
    killed. Any other file gets one JSON object per line for each row, and is replaced as a whole at the end.

    \b
    Examples:
      lithify kafka hydrate orders --bootstrap-servers broker:9092 --to orders.db
      lithify kafka hydrate orders --bootstrap-servers broker:9092 \\
          --to duckdb:shop.data --continuous
      lithify kafka hydrate orders --kafka-conf-file client.properties \\
          --to orders.jsonl --encoding base64
    """
    from lithify.kafka import hydrate as hydrate_table
    from lithify.metrics.copy_metrics import hydrate_metrics

    metrics: MetricsAsked = kafka.pop("metrics")
    conf = settings_used(kafka_settings(**kafka))
    with metrics.served() as meter:
        measured = hydrate_metrics(meter, topic_name)
        begin, notes = partial(_opened, invocation, topic_name), measured.note
        beginning = begun_table(invocation, begin, continuous=continuous, notes=notes)
        if beginning is None:
            return
        (topic, kafka_topic), stopped = beginning
        lines = partial(format_json, encodings=encodings, topic=topic.name)
        fill = partial(hydrate_table, topic, conf, to, kafka_topic=kafka_topic, continuous=continuous, lines=lines)
        with counted(f"{topic.name} → {to}", stopped) as (tell, stops):
            report = fill(
                timeout_s=timeout_ms / 1000,
                tell=in_turn(measured.records, tell),
                notes=in_turn(measured.note, noted(invocation)),
                stops=stops,
            )
    if not invocation.printed(report):
        print_hydrated(report)


def _opened(invocation: Invocation, topic_name: str) -> tuple[Topic, str]:
    """The topic in the lake, and the name of Kafka's topic."""
    from lithify.kafka.kafka_hydration import source_name

    topic = invocation.open_whole_topic(topic_name)
    return topic, source_name(topic)
