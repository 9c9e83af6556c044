"""The slow groups of a soak, all in one thread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread
from typing import Any

from lithify.errors import LithifyError
from lithify.reports.groups import GroupLag
from soak.feeder import Counts, FedTopic
from soak.figures import counted
from soak.groups.slow import GroupCounts, SlowGroup
from soak.outages import Outages
from soak.topics import GROUP

COUNTED_EVERY_S = 15.0
READS = 5
"""Most groups read so often at least while their topics are fed."""
VERY_SLOW = 0.4
"""The share of those that read once or twice: rounds come first, and hold tombstones for them."""


@dataclass(slots=True)
class Groups:
    """A `soak.part.Part`: the groups of the topics that are drawn for them."""

    topics: Sequence[FedTopic]
    fed: Counts
    outages: Outages
    luck: Random
    feed_s: float
    name: str = "groups"
    counts: GroupCounts = field(default_factory=GroupCounts)
    groups: list[SlowGroup] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    held_logs: int = 0
    """The most logs at a time whose tombstones were held."""
    _counted_s: float = 0.0
    _stop: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        self.groups = [
            SlowGroup(fed, Random(self.luck.random()), self.counts, self.luck.random() < 0.5, self._longest_pause_s())
            for fed in self.topics
            if fed.grouped
        ]
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def tick(self) -> None:
        """They have a thread of their own; only what they hold is counted here."""
        if self.counts.commits and time.monotonic() >= self._counted_s + COUNTED_EVERY_S:
            with suppress(LithifyError):  # after an outage
                self.held_logs = max(self.held_logs, sum(lag.holds_tombstones is True for lag in self._lags()))
            self._counted_s = time.monotonic()

    def feeding_ended(self) -> None:
        self._stop.set()

    def unsettled(self) -> Mapping[str, str]:
        assert self._thread is not None
        return {self.name: "groups are not at the ends of their logs"} if self._thread.is_alive() else {}

    def stop(self) -> None:
        """They have ended at the ends of their logs."""

    def findings(self) -> list[str]:
        found = [*self.failed, *(finding for group in self.groups for finding in group.check())]
        told = self.counts.interruptions
        found += [f"unexplained: {one}" for one in told if not one.is_explained(self.fed.deletions, self.outages)]
        lags = self._lags() if self.counts.commits else ()
        # Of a topic that was recreated with fewer partitions some positions stay behind.
        behind = [lag for lag in lags if lag.lag != 0 and lag.log_end_offset is not None]
        return found + [f"{lag.topic}[{lag.partition}]: its group: {lag}" for lag in behind]

    def rows(self) -> list[tuple[str, object]]:
        counts = self.counts
        return [
            ("groups", f"{len(self.groups)}: {counts.records:,} records in {counts.reads:,} reads"),
            ("  commits", f"{counts.commits:,}; {counts.not_committed} not, {counts.shared} second members"),
            ("  resets", counted(counts.resets)),
            ("  logs held", f"at most {self.held_logs} at a time"),
            ("  interruptions", counted(self._kinds)),
        ]

    def to_json(self) -> dict[str, Any]:
        counts = self.counts
        return {
            "groups": len(self.groups),
            "records": counts.records,
            "held_logs": self.held_logs,
            "reads": counts.reads,
            "commits": counts.commits,
            "not_committed": counts.not_committed,
            "second_members": counts.shared,
            "resets": dict(counts.resets),
            "interruptions": dict(self._kinds),
        }

    def end(self) -> None:
        self._stop.set()

    @property
    def _kinds(self) -> Counter[str]:
        return Counter(one.kind for one in self.counts.interruptions)

    def _longest_pause_s(self) -> float:
        return self.feed_s if self.luck.random() < VERY_SLOW else self.feed_s / READS

    def _lags(self) -> tuple[GroupLag, ...]:
        return self.groups[0].fed.lake.group(GROUP).describe()

    def _run(self) -> None:
        """What goes wrong is a finding, and ends it."""
        if not self.groups:
            return
        group = self.groups[0]
        try:
            while not self._stop.is_set():
                group = min(self.groups, key=lambda one: one.next_s)
                if not self._stop.wait(max(0.0, group.next_s - time.monotonic())):
                    group.turn()
            for group in self.groups:
                group.finish()
        except Exception as error:
            self.failed.append(f"{group.fed.name}: its group failed: {type(error).__name__}: {error}")
