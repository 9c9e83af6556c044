"""Ways on plain Parquet files, by hand in libraries; and the floor below all ways."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cases import Log
from way import CORES, OfFiles


class DuckDb(OfFiles):
    """By hand in DuckDB, on all cores: the last offset of each key, then each file without the other records."""

    def run(self) -> Mapping[str, float]:
        with duckdb.connect() as c:
            c.execute(f"SET threads = {CORES}; SET preserve_insertion_order = true; SET enable_progress_bar = false")
            c.execute(f'CREATE TABLE w AS SELECT max("offset") AS o FROM read_parquet({self.log.paths!r}) GROUP BY key')
            for number, file in enumerate(self.log.paths):
                live = f'SELECT * FROM read_parquet(\'{file}\') WHERE "offset" IN (SELECT o FROM w) ORDER BY "offset"'
                c.execute(f"COPY ({live}) TO '{self.out}/{number:05d}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        return {}


class Polars(OfFiles):
    """The same by hand in Polars."""

    def run(self) -> Mapping[str, float]:
        import polars as pl

        last = pl.scan_parquet(self.log.paths).group_by("key").agg(pl.col("offset").max()).select("offset")
        winners = last.collect(engine="streaming")
        for number, file in enumerate(self.log.paths):
            live = pl.read_parquet(file).join(winners, on="offset", how="semi").sort("offset")
            live.write_parquet(self.out / f"{number:05d}.parquet", compression="zstd")
        return {}


class Floor(OfFiles):
    """No way, but what each has to do at least: reads the keys once, and copies what is known to be left."""

    def prepare(self, log: Log, out: Path) -> None:
        super().prepare(log, out)
        with duckdb.connect() as c:
            rows = c.execute(f'SELECT max("offset") AS o FROM read_parquet({log.paths!r}) GROUP BY key').fetchnumpy()
        live = rows["o"]
        self.work = [
            (s.path, str(out / f"{number:05d}.parquet"), np.isin(np.arange(s.base_offset, s.end_offset), live))
            for number, s in enumerate(log.segments)
        ]
        self.pool = ProcessPoolExecutor(CORES)
        list(self.pool.map(_nothing, range(CORES)))

    def run(self) -> Mapping[str, float]:
        list(self.pool.map(_read_keys, self.log.paths))
        list(self.pool.map(_copy, self.work))
        self.pool.shutdown()
        return {}


def _nothing(_: int) -> None:
    """Takes so long that each process of a pool is started for one."""
    time.sleep(0.2)


def _read_keys(path: str) -> int:
    return int(pq.ParquetFile(path).read(columns=["key", "offset"], use_threads=False).num_rows)


def _copy(work: tuple[str, str, np.ndarray]) -> None:
    path, to, live = work
    source, position = pq.ParquetFile(path), 0
    with pq.ParquetWriter(to, source.schema_arrow, compression="zstd", use_dictionary=False) as writer:
        for group in range(source.num_row_groups):
            table = source.read_row_group(group, use_threads=False)
            writer.write_table(table.filter(pa.array(live[position : position + table.num_rows])))
            position += table.num_rows
