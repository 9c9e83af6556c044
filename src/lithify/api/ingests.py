"""What a lake copies from other systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.api.warehouse import WholeWarehouse
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.reports.report import Reports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lithify.pulsar.client import ClientConfig
    from lithify.reports.ingest import IngestReport, TellBatch, TellNote


class LakeIngests(WholeWarehouse):
    """The verbs of `lithify kafka` and `lithify pulsar` that fill topics."""

    __slots__ = ()

    def ingest(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        kafka: Mapping[str, str],
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        into: str | None = None,
        config: Mapping[str, object] | None = None,
        continuous: bool = False,
        interval_ms: int = 1_000,
        max_records: int | None = None,
        drops_keyless: bool = False,
        accepts_loss: bool = False,
        resyncs: bool = False,
        jars: str | None = None,
        checkpoint: str | None = None,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        tell: TellBatch = lambda _batch: None,
        notes: TellNote = lambda _note: None,
        stops: Callable[[], bool] = lambda: False,
    ) -> Reports[IngestReport]:
        """Copies topics of a Kafka cluster, with their offsets; `kafka` are settings of its client, by Java's names.

        Ends after the current records, or with `continuous` when `stops` says so. `tell` gets batches, `notes` gets
        all other notes. A topic that fails has its error in its report. Raises, if it can before Spark starts,
        `RefusedError`, `BrokerError`, `ConnectorError` or `UnknownSourceError` if nothing can begin.
        """
        from lithify.api.wiring import ingests
        from lithify.model.sources.source import IngestRequest
        from lithify.reports.ingest import IngestListener

        request = IngestRequest(
            config=kafka,
            topics=tuple(topics),
            pattern=pattern,
            into=into,
            settings=config or {},
            continuous=continuous,
            interval_ms=interval_ms,
            max_records=max_records,
            drops_keyless=drops_keyless,
            accepts_loss=accepts_loss,
            resyncs=resyncs,
            checkpoint=checkpoint,
        )
        choice = SparkChoice(spark, spark_conf or {})
        return Reports(ingests.kafka_ingest(self.warehouse, choice, jars, request, IngestListener(tell, notes, stops)))

    def import_kafka(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        directories: Sequence[str | PathLike[str]],
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        into: str | None = None,
        config: Mapping[str, object] | None = None,
        max_records: int | None = None,
        drops_keyless: bool = False,
        accepts_loss: bool = False,
        skip_damaged: bool = False,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        tell: TellBatch = lambda _batch: None,
        notes: TellNote = lambda _note: None,
        stops: Callable[[], bool] = lambda: False,
    ) -> Reports[IngestReport]:
        """Copies topics from log directories of a Kafka broker that does not run, with their offsets.

        Of several replicas of a partition it takes the one that a cluster would go on with. Ends as `ingest` does,
        which can continue the copy. Raises `RefusedError`, `InvalidInputError`, `UnknownSourceError` or
        `ConnectorError` if nothing can begin.
        """
        from lithify.api.wiring import ingests
        from lithify.model.sources.source import IngestRequest
        from lithify.reports.ingest import IngestListener

        request = IngestRequest(
            config={},
            topics=tuple(topics),
            pattern=pattern,
            into=into,
            settings=config or {},
            max_records=max_records,
            drops_keyless=drops_keyless,
            accepts_loss=accepts_loss,
            skip_damaged=skip_damaged,
        )
        choice = SparkChoice(spark, spark_conf or {})
        paths = [Path(directory).absolute() for directory in directories]  # tasks are in folders of their own
        return Reports(ingests.kafka_import(self.warehouse, choice, paths, request, IngestListener(tell, notes, stops)))

    def ingest_pulsar(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        cluster: ClientConfig,
        topics: Sequence[str],
        *,
        into: str | None = None,
        config: Mapping[str, object] | None = None,
        continuous: bool = False,
        interval_ms: int = 1_000,
        max_records: int | None = None,
        accepts_loss: bool = False,
        skip_damaged: bool = False,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        tell: TellBatch = lambda _batch: None,
        notes: TellNote = lambda _note: None,
        stops: Callable[[], bool] = lambda: False,
    ) -> Reports[IngestReport]:
        """Copies topics of a Pulsar cluster, with their message ids; as `ingest` ends, and raises as it does."""
        from lithify.api.wiring import ingests
        from lithify.model.sources.source import IngestRequest
        from lithify.pulsar.client.names import TopicName
        from lithify.reports.ingest import IngestListener

        for name in topics:
            TopicName.parsed(name)
        request = IngestRequest(
            config={},
            topics=tuple(topics),
            into=into,
            settings=config or {},
            continuous=continuous,
            interval_ms=interval_ms,
            max_records=max_records,
            accepts_loss=accepts_loss,
            skip_damaged=skip_damaged,
        )
        choice = SparkChoice(spark, spark_conf or {})
        return Reports(
            ingests.pulsar_ingest(self.warehouse, choice, cluster, request, IngestListener(tell, notes, stops))
        )
