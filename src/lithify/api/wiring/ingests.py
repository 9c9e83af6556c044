"""Ingests, made of a source and a session: Kafka's clusters and log directories, Pulsar's clusters.

And rounds over the log directories themselves.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lithify.api.wiring.scopes import check_stored
from lithify.api.wiring.system_clock import SystemClock
from lithify.errors import ConnectorError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lithify.api.wiring.spark_choice import SparkChoice
    from lithify.model.sources.source import IngestRequest
    from lithify.ports.engine import Progress, RunLimits
    from lithify.ports.store import Warehouse
    from lithify.pulsar.client import ClientConfig
    from lithify.reports.ingest import IngestListener, IngestReport
    from lithify.reports.rounds.cleaned_logs import CleanReport


def kafka_ingest(
    warehouse: Warehouse,
    choice: SparkChoice,
    jars: str | None,
    request: IngestRequest,
    listener: IngestListener,
) -> tuple[IngestReport, ...]:
    """Copies topics of a Kafka cluster on a session with Spark's Kafka connector; it connects to Kafka before it starts
    one.

    Raises `RefusedError`, `ConnectorError`, `BrokerError` or `UnknownSourceError` if nothing can begin.
    """
    from lithify.kafka_client.dialects import for_java
    from lithify.kafka_client.first_look import look_first
    from lithify.model.sources.origin import KAFKA
    from lithify.reports.ingest import IngestNote
    from lithify.service.ingest.ingest import ingest
    from lithify.service.ingest.known_sources import check_one_can_begin
    from lithify.service.read.signs import copied_signs
    from lithify.spark.kafka.connector import connector_conf
    from lithify.spark.kafka.kafka_source import KafkaSource
    from lithify.spark.session.ended_session import ending_first

    check_stored(warehouse)
    java = replace(request, config=for_java(request.config))
    check_one_can_begin(warehouse.store, KAFKA, request)
    if choice.session is None:
        note = listener.notes
        look_first(request.config, request.topics, lambda kind, text: note(IngestNote(kind, text)), listener.stops)
        if listener.stops():
            return ()
        conf = connector_conf(jars, choice.conf, lambda text: note(IngestNote("connector", text)))
        choice = replace(choice, conf=conf)
    session, copied = choice.noted(listener.notes).factory()(), partial(copied_signs, warehouse)
    with (
        ending_first(listener.stops),
        KafkaSource(session, java, listener.stops, listener.notes, copied) as source,
    ):
        return ingest(warehouse, source, java, listener.tell, listener.stops, listener.notes)
    return ()


def kafka_import(
    warehouse: Warehouse, choice: SparkChoice, paths: Sequence[Path], request: IngestRequest, listener: IngestListener
) -> tuple[IngestReport, ...]:
    """Copies topics of Kafka's log directories.

    Raises `RefusedError`, `InvalidInputError`, `UnknownSourceError` or `ConnectorError` if nothing can begin.
    """
    from lithify.errors.extras import KAFKA_FILES
    from lithify.model.sources.origin import KAFKA
    from lithify.service.ingest.ingest import ingest
    from lithify.service.ingest.known_sources import check_one_can_begin
    from lithify.service.read.signs import copied_signs
    from lithify.spark.session.ended_session import ending_first

    try:
        from lithify.spark.kafka.directories.log_source import LogDirectories
    except ModuleNotFoundError as error:
        raise ConnectorError(f"what reads Kafka's files is missing: {error}", hint=KAFKA_FILES) from error
    check_stored(warehouse)
    check_one_can_begin(warehouse.store, KAFKA, request)
    notes, copied = listener.notes, partial(copied_signs, warehouse)
    source = LogDirectories(choice.noted(notes).factory(), paths, request, listener, copied)
    with ending_first(listener.stops):
        return ingest(warehouse, source, request, listener.tell, listener.stops, notes)
    return ()


def pulsar_ingest(
    warehouse: Warehouse,
    choice: SparkChoice,
    cluster: ClientConfig,
    request: IngestRequest,
    listener: IngestListener,
) -> tuple[IngestReport, ...]:
    """Copies topics of a Pulsar cluster. Raises `BrokerError` or `UnknownSourceError` if nothing can begin."""
    from lithify.service.ingest.ingest import ingest
    from lithify.spark.pulsar.pulsar_source import PulsarSource
    from lithify.spark.session.ended_session import ending_first

    check_stored(warehouse)
    stops, notes = listener.stops, listener.notes
    source = PulsarSource(choice.noted(notes).factory(), cluster, request, stops, warehouse.clock, notes)
    with ending_first(stops):
        return ingest(warehouse, source, request, listener.tell, stops, notes)
    return ()


def cleaned_directory(
    choice: SparkChoice,
    limits: RunLimits,
    what: tuple[Path, Sequence[str], Mapping[str, str]],
    how: Mapping[str, bool],
    progress: Progress,
) -> CleanReport:
    """See `api.kafka_files.cleaning`; `what` are the directory, the topics and their settings.

    Starts Spark with the first scan.
    """
    from lithify.columnar.files.access import FileAccess
    from lithify.errors.extras import KAFKA_FILES

    try:
        from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
        from lithify.kafka_log.cleaning.log_round import CleanRequest
        from lithify.spark.kafka.cleaning.spark_tasks import SparkTasks
    except ModuleNotFoundError as error:
        raise ConnectorError(f"what reads Kafka's files is missing: {error}", hint=KAFKA_FILES) from error
    from lithify.spark.session.start import one_machine, slots
    from lithify.spark.tasks import Pace, Workers

    if not one_machine(choice.session, choice.conf):  # others have other files, or start a task twice at the same time
        raise RefusedError(
            "the tasks of Spark would run on a cluster, but the files are on this machine",
            hint="run it with spark.master=local[*]",
        )
    (path, topics, config), clock = what, SystemClock()
    request = CleanRequest(path, topics, config, clock.now_ms, **how)
    workers = Workers(
        access=FileAccess(),
        slots=slots(choice.session, choice.conf),
        pace=Pace(time.monotonic, time.sleep),
        new_id=clock.new_id,
    )
    return DirectoryCleaner(SparkTasks(choice.factory(), workers, limits), request, progress).clean()
