"""The engine of rounds on Spark, which imports PySpark once a round has work, and has its JVM start meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

from lithify.api.wiring.spark_choice import SparkChoice
from lithify.ports.engine import PlannedLog, Progress, Round, RunLimits
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from lithify.ports.profile import Profile
    from lithify.spark.engine import SparkEngine
    from lithify.spark.tasks import Workers


class LateEngine:
    """See `ports.engine.RewriteEngine`."""

    def __init__(self, warehouse: Warehouse, choice: SparkChoice, profile: Profile | None = None) -> None:
        self._warehouse, self._choice, self._profile = warehouse, choice, profile

    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> AbstractContextManager[Round]:
        """A round of logs, at least one of which has work."""
        from lithify.spark.session.launch import begin_early

        if self._choice.session is None and any(log.plan.scanned for log in logs):
            begin_early(self._choice.conf)
        return self._engine.open_round(logs, limits, run_id, progress)

    @cached_property
    def _engine(self) -> SparkEngine:
        from lithify.spark.engine import SparkEngine

        spark_workers = workers(self._warehouse, self._choice, self._profile)
        return SparkEngine(self._choice.factory(), spark_workers, self._profile)


def workers(warehouse: Warehouse, choice: SparkChoice, profile: Profile | None = None) -> Workers:
    """What tasks need of the warehouse."""
    from lithify.spark.session.start import one_machine, slots
    from lithify.spark.tasks import Pace, Workers

    pace, gauges = Pace(time.monotonic, time.sleep), None if profile is None else profile.gauges
    return Workers(
        access=warehouse.files.access,
        slots=slots(choice.session, choice.conf),
        pace=pace,
        new_id=warehouse.clock.new_id,
        gauges=gauges,
        one_machine=one_machine(choice.session, choice.conf),
    )
