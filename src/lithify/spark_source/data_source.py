"""The `DataSource` of the format `lithify`, and its registration with a session.

options     options with the names of Spark's Kafka source, checked
columns     the schema of Spark's Kafka source, and conversion of segments to it
reading     batch and streaming readers: plan on the driver, read Arrow batches in tasks
refusals    errors without a traceback, also of a stream that cannot begin
filters     pushed filters on offset, partition and timestamp as bounds
writing     batch and streaming writers: tasks write segments, the driver commits once

Spark starts a process of its own for each step of a query. So what only some steps need is imported when they do.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lithify.api.wiring import open_warehouse
from lithify.api.wiring.place import default_place
from lithify.errors import LithifyError
from lithify.model.stored_file import local_folder
from lithify.spark_source.columns import check_schema, schema_of
from lithify.spark_source.options import Connect, place, read_options, write_options
from lithify.spark_source.refusals import RefusedStream, without_traceback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lithify.spark_source.reading import BatchReader, StreamReader
    from lithify.spark_source.writing import BatchWriter, StreamWriter


def register(spark: SparkSession, warehouse: str | None = None, *, catalog: str | None = None) -> None:
    """Registers the format `lithify` with a session.

    Reads and writes use this warehouse or catalog unless they have an option `warehouse` or `catalog`;
    the default is `$LITHIFY_WAREHOUSE` or `$LITHIFY_CATALOG`, or else `./lithify-warehouse`.
    """
    if warehouse is None and catalog is None:
        warehouse, catalog = default_place()
    if warehouse is not None and "://" not in warehouse:
        warehouse = str(local_folder(warehouse))  # Spark's processes may have another directory
    source = type("RegisteredSource", (LithifySource,), {"default": (warehouse, catalog)})
    spark.dataSource.register(source)


class LithifySource(DataSource):  # type: ignore[misc]
    """Topics, with the schema and the options of Spark's Kafka source. `register` registers a subclass."""

    default: tuple[str | None, str | None] = (None, None)
    """The warehouse and the catalog where the options name neither."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "lithify"

    @without_traceback()
    def schema(self) -> StructType:
        """The schema of Spark's Kafka source, or the requested `columns`. Raises `RefusedError`."""
        options = read_options(self.options)
        return schema_of(
            options.columns,
            include_headers=options.include_headers,
            include_message_ids=options.include_message_ids,
        )

    @without_traceback()
    def reader(self, schema: StructType) -> BatchReader:
        """The reader of a batch query. Raises `RefusedError`."""
        from lithify.spark_source.reading import BatchReader

        check_schema(schema)
        return BatchReader(self._connect(), read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> StreamReader | RefusedStream:  # noqa: N802 - Spark's names
        """The reader of a streaming query, or one that raises why there is none."""
        from lithify.spark_source.reading import StreamReader

        try:
            check_schema(schema)
            return StreamReader(self._connect(), read_options(self.options), schema)
        except LithifyError as error:
            return RefusedStream(error)

    @without_traceback()
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The writer of a batch query. Raises `RefusedError`."""
        from lithify.spark_source.writing import BatchWriter

        return BatchWriter(self._connect(), write_options(self.options), schema, overwrite=overwrite)

    @without_traceback()
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """The writer of a streaming query. Raises `RefusedError`."""
        from lithify.spark_source.writing import StreamWriter

        return StreamWriter(self._connect(), write_options(self.options), schema, overwrite=overwrite)

    def _connect(self) -> Connect:
        named = place(self.options)
        return partial(open_warehouse, *(named if any(named) else self.default))
