"""A real Kafka broker that is written all the time, and an ingest into the soak's warehouse that is killed once.

    producers ──► broker ──► lithify kafka ingest --continuous ──► plain, transactional ──► cleaners
                                  ✗ killed, and started again

In the end the table of each copy must be that of a consumer which reads all of Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lithify.api.lake import Lake
from lithify.errors import LithifyError
from lithify.model.record import Record
from soak.kafka.feed import PARTITIONS, TOPICS, WRITTEN_IN_S, Feed, table_of_kafka
from soak.outages import Outages
from soak.programs import ENDS_WITHIN_S, Program
from soak.servers import CATALOG
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import ingest_command

STREAM = "kafka"
RECORDS_PER_S = 200
PACE_S = 0.5
KEYS = 5_000


@dataclass(slots=True)
class KafkaIngest:
    """A `soak.part.Part`."""

    lake: Lake
    broker: KafkaBroker
    outages: Outages
    feed_s: float
    env: Mapping[str, str]
    folder: Path
    name: str = "kafka"
    found: list[str] = field(default_factory=list)
    keys: int = 0
    _feed: Feed = field(init=False)
    _program: Program = field(init=False)
    _kill_s: float = 0.0

    def start(self) -> None:
        for topic in TOPICS:
            self.broker.make_topic(PARTITIONS, topic, cleanup_policy="compact")
        self._feed = Feed(self.broker, RECORDS_PER_S * WRITTEN_IN_S, PACE_S, KEYS)
        self._feed.start()
        flags = ["--catalog", CATALOG, "--into", f"{STREAM}/", "--continuous", "--interval", "1s"]
        flags += [word for topic in TOPICS for word in ("--topic", topic)]
        flags += ["--spark-conf", "spark.driver.memory=1g"]
        self._program = Program("ingest", ingest_command(self.broker, *flags), self.folder, self.env)
        self._program.start()
        self._kill_s = time.monotonic() + self.feed_s / 2

    def tick(self) -> None:
        if not self._program.is_running:
            self.found += filter(None, [self.outages.restart(self._program)])
        if self._kill_s and time.monotonic() >= self._kill_s:
            self._kill_s = 0.0
            self._program.kill()
            self._program.start()

    def feeding_ended(self) -> None:
        self._kill_s = 0.0
        self._feed.stop()

    def unsettled(self) -> Mapping[str, str]:
        behind = self._behind()
        if behind is not None:
            return {STREAM: behind}
        found = {}
        for topic in TOPICS:
            for log in self.lake.topic(f"{STREAM}/{topic}").status().logs:
                if log.due:
                    found[f"{STREAM}/{topic}"] = f"{STREAM}/{topic}[{log.partition}]: due: {log.due_reason}"
        return found

    def stop(self) -> None:
        asked_s = time.monotonic()
        self._program.ask_to_stop()
        self._program.wait_stopped(asked_s)
        life = self._program.life
        if life.exit_code != 0 or (life.stopped_s or 0) > ENDS_WITHIN_S:
            self.found.append(
                f"the ingest ended with {life.exit_code} after {life.stopped_s:.1f} s: {self._program.said()}"
            )

    def findings(self) -> list[str]:
        for topic in TOPICS:
            whole, table = table_of_kafka(self.broker, topic), dict[bytes, Record]()
            self.lake.topic(f"{STREAM}/{topic}").fill(table)
            mine = {key: record.value for key, record in table.items()}
            self.keys += len(whole)
            differ = [key for key in whole.keys() | mine.keys() if whole.get(key) != mine.get(key)]
            if differ:
                self.found.append(f"{STREAM}/{topic}: {len(differ)} keys are not as in Kafka, such as {differ[0]!r}")
        return self.found

    def rows(self) -> list[tuple[str, object]]:
        sent = sum(self._feed.sent.values())
        lives = f"{len(self._program.lives)} lives"
        return [("Kafka ingest", f"{self._copied:,} of {sent:,} records, {self.keys:,} keys; {lives}")]

    def to_json(self) -> dict[str, Any]:
        return {
            "sent": dict(self._feed.sent),
            "copied": self._copied,
            "keys": self.keys,
            "lives": len(self._program.lives),
        }

    def end(self) -> None:
        if hasattr(self, "_feed"):
            self._feed.stop()
        if hasattr(self, "_program"):
            self._program.end_for_good()

    @property
    def _copied(self) -> int:
        """Records of all lives, but for batches that were not told because of a kill."""
        events = (event for life in self._program.lives for event in life.events())
        return sum(event["records"] for event in events if "logs" in event)

    def _behind(self) -> str | None:
        """Which copy does not end where Kafka does."""
        for topic in TOPICS:
            for partition in range(PARTITIONS):
                end = self.broker.log_start_and_end(topic, partition, committed=True)[1]
                try:
                    mine = self.lake.topic(f"{STREAM}/{topic}").state().log(partition).log_end_offset
                except LithifyError as error:
                    return f"{topic}: {error}"
                if mine < end:
                    return f"{topic}[{partition}] is at {mine} of {end}"
        return None
