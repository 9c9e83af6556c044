"""The Spark session of a run: which one, and which callback reports that it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lithify.model.settings.secrets import keep
from lithify.model.settings.units import format_duration
from lithify.ports.engine import SPARK_STARTED, STARTING_SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lithify.reports.ingest import TellNote


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """The Spark session to use: an existing one, or a local one created with these settings.

    `starts` is called with (0, 1) and (1, 1) before and after one is started.
    """

    session: SparkSession | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    starts: Callable[[int, int], None] = lambda _done, _total: None

    def factory(self) -> Callable[[], SparkSession]:
        """A function that returns the session, or starts it."""
        from lithify.spark.session.start import session_factory

        keep(self.conf)
        return session_factory(self.session, self.conf, self.starts)

    def noted(self, notes: TellNote) -> SparkChoice:
        """This choice for an ingest, which reports in notes that Spark starts, and how long that took."""
        from lithify.reports.ingest import IngestNote

        began_s = 0.0

        def tell(done: int, _total: int) -> None:
            nonlocal began_s
            if not done:
                began_s = time.monotonic()
                notes(IngestNote("starting_spark", STARTING_SPARK))
            else:
                took_ms = round((time.monotonic() - began_s) * 1000)
                notes(IngestNote("spark_started", SPARK_STARTED.format(format_duration(took_ms))))

        return replace(self, starts=tell)
