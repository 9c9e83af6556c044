"""The Python API of the files of a Kafka broker that does not run.

from lithify.api.kafka_files.cleaning import clean_log_directory

report = clean_log_directory("/var/lib/kafka/data", ["orders"], dry_run=True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from lithify.api.limits import DEFAULT_TASK_MEMORY, Size, run_limits
from lithify.api.wiring.ingests import cleaned_directory
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.ports.engine import START_SPARK, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lithify.reports.rounds.cleaned_logs import CleanReport


def clean_log_directory(  # noqa: PLR0913 - the flags of the verb, by name
    directory: str | PathLike[str],
    topics: Sequence[str],
    config: Mapping[str, str] = MappingProxyType({}),
    *,
    dry_run: bool = False,
    after_crash: bool = False,
    task_memory: Size = DEFAULT_TASK_MEMORY,
    spark: SparkSession | None = None,
    spark_conf: Mapping[str, str] | None = None,
    progress: Progress = lambda _phase, _done, _total: None,
) -> CleanReport:
    """A round of Kafka's own kind over all logs of these topics in a directory that `log.dirs` of a broker names.

    The metadata log in the directory says how the topics are set up. `config` are more settings by Kafka's names;
    `metadata.log.dir` is where that log is, if it is in another directory. With `dry_run` it only finds out what would
    be removed. `after_crash`: even if its broker was not stopped in order. A log that fails has its error in the
    report. Raises `RefusedError`, `InvalidInputError`, `DamagedError` or `ConnectorError` if nothing can begin.
    """
    limits, choice = run_limits(task_memory), SparkChoice(spark, spark_conf or {}, partial(progress, START_SPARK))
    how = {"dry_run": dry_run, "after_crash": after_crash}
    return cleaned_directory(choice, limits, (Path(directory), tuple(topics), config), how, progress)
