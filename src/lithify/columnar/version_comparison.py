"""Compares the keys of one part of a hash range by version, in DuckDB: by whole keys (C12), in one thread.

    waiting ──► lowest version per key ─────────────┐ asked for expired tombstones (C20)
    dirty ────► highest (version, rank) per key ──► winners (C10)
    clean ────► lost, or the dirty winner of its key is: taken back

Each clean key is there once (C4), so the clean part is streamed past the dirty winners: memory
follows the keys that are dirty or wait, not the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from lithify.columnar.hash_range import HashRange
from lithify.columnar.key_source import KeySource, MemoryExceededError
from lithify.columnar.marks import Integers, MarkSet
from lithify.columnar.ranks import EXPIRED_BIT, ORDINAL_SHIFT, PAST_BIT, RANK, Flags, Portion
from lithify.compaction.versions import NO_VERSION

RESULT_RECORDS = 1 << 17

_RANKS = 2**63
_MAY_GO = f"rank & {EXPIRED_BIT | PAST_BIT} <> 0"
# Version and rank as one number: a HUGEINT has 128 bits, and takes the lowest version there can be.
_STANDING = f"(coalesce(version::HUGEINT, {NO_VERSION}) * {_RANKS} + rank)"
_RANK_OF_BEST = f"(best & {_RANKS - 1}::HUGEINT)::BIGINT"

# What is strictly above the lowest version that waits beats the record that has it.
_ASKED = f"""
SELECT key, (min(coalesce(version::HUGEINT, {NO_VERSION})) + 1) * {_RANKS} AS held_from, count(*) AS records
FROM waiting WHERE {{part}} GROUP BY key
"""
_HIGHEST = f"SELECT key, max({_STANDING}) AS best, count(*) AS records FROM dirty WHERE {{part}} GROUP BY key"
_HIGHEST_HELD = f"""
SELECT {_RANK_OF_BEST} AS rank, highest.records AS records, coalesce(best >= held_from, false) AS held
FROM ({{highest}}) AS highest LEFT JOIN asked ON highest.key = asked.key
"""
_DECIDED = f"""
SELECT rank, coalesce(best > standing, false) AS superseded, coalesce(standing >= held_from, false) AS held,
       coalesce({_RANK_OF_BEST}, -1) AS dirty_rank, coalesce(best >= held_from, false) AS dirty_held
FROM (SELECT key, rank, {_STANDING} AS standing FROM clean WHERE {{part}}) AS judged
LEFT JOIN highest ON judged.key = highest.key LEFT JOIN asked ON judged.key = asked.key
WHERE best IS NOT NULL OR {_MAY_GO}
"""


class VersionComparison:
    """One try at one part of a range. What it finds goes to the tally and the marks of the source."""

    def __init__(self, source: KeySource, part: HashRange) -> None:
        self._source = source
        self._part = part.sql
        self._failure: Exception | None = None

    def run(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raises `MemoryExceededError`, or what the source raises."""
        try:
            self._compare(connection)
        except (duckdb.Error, OSError) as error:  # while results are streamed, DuckDB's come as OSError
            if self._failure is not None:  # the source failed, DuckDB only says so
                raise self._failure from None
            if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error):
                raise MemoryExceededError from error
            raise

    def _compare(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._register(connection, Portion.WAITING)
        _store(connection, "asked", _ASKED.format(part=self._part))
        asked = connection.execute("SELECT coalesce(sum(records), 0)::BIGINT FROM asked").fetchone()
        self._source.tally.asked += asked[0] if asked else 0
        self._register(connection, Portion.DIRTY)
        highest = _HIGHEST.format(part=self._part)
        if self._source.has(Portion.CLEAN):
            _store(connection, "highest", highest)
            self._take_winners(connection.execute(_HIGHEST_HELD.format(highest="SELECT * FROM highest")))
            self._register(connection, Portion.CLEAN)
            self._take_decided(connection.execute(_DECIDED.format(part=self._part)))
            connection.execute("DROP TABLE highest")
        else:
            self._take_winners(connection.execute(_HIGHEST_HELD.format(highest=highest)))
        connection.execute("DROP TABLE asked")

    def _take_winners(self, result: Any) -> None:
        source = self._source
        for batch in result.to_arrow_reader(RESULT_RECORDS):
            ranks = _numbers(batch, RANK)
            source.tally.compared += int(_numbers(batch, "records").sum())
            stays = source.tally.win(ranks, _flags(batch, "held"))
            source.marks.add(ranks[stays] >> ORDINAL_SHIFT)

    def _take_decided(self, result: Any) -> None:
        source = self._source
        beaten = MarkSet(source.starts)
        for batch in result.to_arrow_reader(RESULT_RECORDS):
            self._judge_clean(batch)
            dirty = _numbers(batch, "dirty_rank")
            loses = (dirty >= 0) & ~_flags(batch, "superseded")
            stayed = source.tally.win(dirty[loses], _flags(batch, "dirty_held")[loses], -1)
            beaten.add(dirty[loses][stayed] >> ORDINAL_SHIFT)
        source.marks.take_back(beaten)

    def _judge_clean(self, batch: pa.RecordBatch) -> None:
        source, ranks = self._source, _numbers(batch, RANK)
        goes = source.tally.judge_clean(ranks, _flags(batch, "superseded"), _flags(batch, "held"))
        source.marks.add(ranks[goes] >> ORDINAL_SHIFT)

    def _register(self, connection: duckdb.DuckDBPyConnection, portion: Portion) -> None:
        # The bare capsule, not the reader: DuckDB would wrap a reader in a scanner of Arrow's, which
        # reads ahead in threads of its own and so holds most of the input in memory.
        keys = self._watched(self._source.keys(portion))
        reader = pa.RecordBatchReader.from_batches(self._source.schema, keys)
        connection.register(portion, reader.__arrow_c_stream__())

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            self._failure = error
            raise


def _store(connection: duckdb.DuckDBPyConnection, name: str, query: str) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")


def _numbers(batch: pa.RecordBatch, column: str) -> Integers:
    numbers: Integers = batch.column(column).to_numpy()
    return numbers


def _flags(batch: pa.RecordBatch, column: str) -> Flags:
    return np.asarray(batch.column(column).to_numpy(zero_copy_only=False), np.bool_)
