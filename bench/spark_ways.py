"""Spark jobs as they are written by hand, each on a warm session that is set up as those of Lithify are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from cases import Log
from lithify.model.segment import Segment
from way import OfFiles, shuffled_bytes, spark_session


class RowNumber(OfFiles):
    """A Spark job: `row_number` over whole records."""

    @cached_property
    def session(self) -> Any:
        return spark_session({})

    def prepare(self, log: Log, out: Path) -> None:
        _ = self.session
        self.log, self.out = log, out

    def run(self) -> Mapping[str, float]:
        shuffled_before = shuffled_bytes(self.session)
        self._latest(self.log.segments).sortWithinPartitions("offset").write.parquet(str(self.out), compression="zstd")
        return {"shuffled_bytes": shuffled_bytes(self.session) - shuffled_before}

    def _latest(self, segments: tuple[Segment, ...]) -> Any:
        newest_first = Window.partitionBy("key").orderBy(F.col("offset").desc())
        records = self.session.read.parquet(*(s.path for s in segments))
        return records.withColumn("place", F.row_number().over(newest_first)).where("place = 1").drop("place")


class JoinAndRewrite(RowNumber):
    """As a copy-on-write `MERGE INTO` may do it: joins the new records to the table, and writes all of it again."""

    def run(self) -> Mapping[str, float]:
        shuffled_before = shuffled_bytes(self.session)
        latest = self._latest(self.log.dirty)
        table = self.session.read.parquet(*(s.path for s in self.log.clean))
        merged = table.join(latest.select("key"), "key", "left_anti").select(latest.columns).unionByName(latest)
        merged.write.parquet(str(self.out), compression="zstd")
        return {"shuffled_bytes": shuffled_bytes(self.session) - shuffled_before}
