"""The `DataSource` of the format `lithify`. A subclass opens the warehouse (`lithify.spark_source`)."""

from __future__ import annotations

from abc import abstractmethod

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lithify.spark.source.columns import check_schema, schema_of
from lithify.spark.source.options import place, read_options, write_options
from lithify.spark.source.reading import BatchReader, StreamReader
from lithify.spark.source.topics import Connect
from lithify.spark.source.writing import BatchWriter, StreamWriter

FORMAT = "lithify"


class LithifySource(DataSource):  # type: ignore[misc]
    """Topics, with the schema and the options of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    @abstractmethod
    def connect(self, warehouse: str | None, catalog: str | None) -> Connect:
        """A function that opens the warehouse or catalog that the options name, or the default one."""

    def schema(self) -> StructType:
        """The schema of Spark's Kafka source, or the requested `columns`. Raises `RefusedError`."""
        options = read_options(self.options)
        return schema_of(options.columns, include_headers=options.include_headers)

    def reader(self, schema: StructType) -> BatchReader:
        """The reader of a batch query. Raises `RefusedError`."""
        check_schema(schema)
        return BatchReader(self._connect(), read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's names
        """The reader of a streaming query. Raises `RefusedError`."""
        check_schema(schema)
        return StreamReader(self._connect(), read_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The writer of a batch query. Raises `RefusedError`."""
        return BatchWriter(self._connect(), write_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """The writer of a streaming query. Raises `RefusedError`."""
        return StreamWriter(self._connect(), write_options(self.options), schema, overwrite=overwrite)

    def _connect(self) -> Connect:
        return self.connect(*place(self.options))
