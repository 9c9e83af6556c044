"""The ways that `just bench` compares, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from shutil import which

from cases import Case
from way import Way


@dataclass(frozen=True, slots=True)
class Known:
    """Where a way is."""

    module: str
    name: str
    everywhere: bool = False
    """Whether it is fast enough to run on all cases, not only on some."""
    needs: tuple[str, ...] = ()
    """Modules and programs that not every machine has."""
    whole: bool = True
    """Whether it works on logs that no round has compacted."""
    growing: bool = True
    """Whether it works on compacted logs with new records."""

    def made(self) -> Way:
        way: Way = getattr(import_module(self.module), self.name)()
        return way

    def missing(self) -> str | None:
        """Why it cannot run here."""
        lacking = [name for name in self.needs if find_spec(name) is None and which(name) is None]
        return f"{' and '.join(lacking)} is not installed" if lacking else None

    def fits(self, case: Case) -> bool:
        return self.whole if case.clean is None else self.growing


WAYS: Mapping[str, Known] = {
    "lithify": Known("lithify_ways", "LithifyWarm", everywhere=True),
    "duckdb": Known("file_ways", "DuckDb", everywhere=True),
    "polars": Known("file_ways", "Polars", needs=("polars",)),
    "floor": Known("file_ways", "Floor", everywhere=True),
    "lithify-cold": Known("lithify_ways", "LithifyCold"),
    "one-worker": Known("lithify_ways", "LithifyOnOneWorker"),
    "two-workers": Known("lithify_ways", "LithifyOnTwoWorkers"),
    "row_number": Known("spark_ways", "RowNumber"),
    "join": Known("spark_ways", "JoinAndRewrite", whole=False),
    "kafka": Known("kafka_way", "KafkaCleaner", needs=("confluent_kafka",), growing=False),
    "pulsar": Known("pulsar_way", "PulsarCompactor", needs=("pulsar", "mvn"), growing=False),
}
