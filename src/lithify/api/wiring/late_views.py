"""The engine of larger rounds of live Pulsar topics, which imports PySpark once there is one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lithify.api.wiring.spark_choice import SparkChoice
from lithify.api.wiring.system_clock import SystemClock
from lithify.errors import LithifyError
from lithify.ports.engine import Progress, RunLimits
from lithify.ports.pulsar.views import PlannedView, ViewRules, WrittenView
from lithify.pulsar.rounds.entry_reader import ReaderOf
from lithify.pulsar.rounds.view_ledger import OpenLedgers


@dataclass(frozen=True, slots=True)
class LateViews:
    """See `ports.pulsar.ViewEngine`."""

    choice: SparkChoice
    reader_of: ReaderOf
    open_ledgers: OpenLedgers

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        """See `ports.pulsar.ViewEngine`."""
        from lithify.spark.session.launch import begin_early

        if self.choice.session is None:
            begin_early(self.choice.conf)
        from lithify.spark.pulsar.engine import PulsarEngine
        from lithify.spark.session.start import slots
        from lithify.spark.tasks import Pace

        session, pace = self.choice.factory(), Pace(time.monotonic, time.sleep)
        many = slots(self.choice.session, self.choice.conf)
        engine = PulsarEngine(session, self.reader_of, self.open_ledgers, many, pace, SystemClock().new_id)
        return engine.write(views, rules, limits, run_id, progress)
