"""What a way of keeping the last record of each key is, and what several of them share.

A way gets ready for a log, does its work, which alone is measured, and then shows which records it has kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from cases import Log

KEPT = ["offset", "key", "value"]
CORES = os.cpu_count() or 1


class Way(Protocol):
    """One way; `out` is a folder of its own for the log that it is ready for."""

    keeps_tombstones: ClassVar[bool]
    """Whether a delete stays as the last record of its key, for a time at least."""

    def prepare(self, log: Log, out: Path) -> None: ...

    def run(self) -> Mapping[str, float]:
        """Does the work. Returns figures of its own, if it has some."""
        ...

    def kept(self) -> Iterable[pa.Table]:
        """The columns `KEPT` of the records that are left, in any order."""
        ...

    def close(self) -> None:
        """Ends what it has started."""
        ...


@dataclass(slots=True)
class OfFiles:
    """What ways that write plain Parquet files have in common."""

    keeps_tombstones: ClassVar[bool] = True

    log: Log = Log((), ())
    out: Path = Path()

    def prepare(self, log: Log, out: Path) -> None:
        out.mkdir()
        self.log, self.out = log, out

    def kept(self) -> Iterable[pa.Table]:
        for file in sorted(self.out.glob("*.parquet")):
            yield from (pa.Table.from_batches([batch]) for batch in pq.ParquetFile(file).iter_batches(columns=KEPT))

    def close(self) -> None:
        """There is nothing to end: sessions of Spark end with their process."""


def spark_session(conf: Mapping[str, str]) -> Any:
    """A session as Lithify makes it, for Spark's own ways, too; local unless `conf` says otherwise."""
    from lithify.spark.session.start import session_factory

    return session_factory(None, conf)()


def shuffled_bytes(session: Any) -> int:
    """What all tasks of a session have written for other tasks so far."""
    executors = session.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(n).totalShuffleWrite() for n in range(executors.size()))
