"""Rounds over Kafka's log directories, made of a cleaner, the clock and Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lithify.api.wiring.system_clock import SystemClock
from lithify.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lithify.api.wiring.spark_choice import SparkChoice
    from lithify.ports.engine import Progress, RunLimits
    from lithify.reports.rounds.cleaned_logs import CleanReport


def cleaned_directory(
    choice: SparkChoice,
    limits: RunLimits,
    what: tuple[Path, Sequence[str], Mapping[str, str]],
    how: Mapping[str, bool],
    progress: Progress,
) -> CleanReport:
    """See `api.kafka_files`; `what` are the directory, topics and their settings. Starts Spark with the first scan."""
    from lithify.columnar.files.access import FileAccess
    from lithify.errors.extras import KAFKA_FILES

    try:
        from lithify.kafka_log.cleaning.clean_settings import clean_settings
        from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
        from lithify.kafka_log.cleaning.log_round import CleanRequest
        from lithify.spark.kafka.cleaning.spark_tasks import SparkTasks
    except ModuleNotFoundError as error:
        raise ConnectorError(f"what reads Kafka's files is missing: {error}", hint=KAFKA_FILES) from error
    from lithify.spark.session.start import slots
    from lithify.spark.tasks import Pace, Workers

    (path, topics, config), clock = what, SystemClock()
    request = CleanRequest(path, topics, clean_settings(config), clock.now_ms(), **how)
    workers = Workers(
        access=FileAccess(),
        slots=slots(choice.session, choice.conf),
        pace=Pace(time.monotonic, time.sleep),
        new_id=clock.new_id,
    )
    return DirectoryCleaner(SparkTasks(choice.factory(), workers, limits), request, progress).clean()
