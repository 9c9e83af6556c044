"""A log of a real Kafka broker, and its log cleaner, one round at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from lithify.kafka.consumer.live_tail import record_of
from lithify.kafka_client.client import Cluster
from lithify.model.record import Record
from support.kafka.broker import KafkaBroker, read_all
from support.kafka.lake import send
from support.kafka.rounds import RecordedRound, round_between
from support.servers.tcp_proxy import wait_until

HELD, RELEASED = "1.0", "0.0"
SEGMENT_MS = 60_000
ROUND_S = 60.0

_ids = count(1)


@dataclass(slots=True)
class LiveLog:
    """A compacted topic of one partition; its cleaner waits until `clean`.

    `config` is the topic's, by Kafka's names. `clock_ms` is the timestamp of the next record.
    """

    broker: KafkaBroker
    config: Mapping[str, str]
    clock_ms: int
    name: str = ""
    known: dict[int, Record] = field(default_factory=dict)
    rounds: list[RecordedRound] = field(default_factory=list)
    _marked_ms: int = 0
    """When the last transaction ended: the timestamp of what Kafka writes for that, by its own clock."""

    def __post_init__(self) -> None:
        settings = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": HELD,
            "segment.ms": str(SEGMENT_MS),
            "message.timestamp.after.max.ms": str(2**63 - 1),
            **self.config,
        }
        self.name = self.broker.make_topic(1, **{name.replace(".", "_"): value for name, value in settings.items()})

    def append(self, records: Sequence[Record], *, codec: str = "none") -> None:
        """One batch or more, with timestamps that ascend by one."""
        producer = self.broker.producer(compression_type=codec)
        send(producer, self.name, [self._stamped(record) for record in records])
        assert producer.flush(30) == 0

    def transaction(self, records: Sequence[Record], *, commits: bool) -> None:
        producer = self.broker.producer(transactional_id=f"{self.name}-{next(_ids)}")
        producer.init_transactions(30)
        producer.begin_transaction()
        send(producer, self.name, [self._stamped(record) for record in records])
        assert producer.flush(30) == 0
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
        self._marked_ms = time.time_ns() // 1_000_000
        wait_until(self._is_stable, "the transaction does not get to its end")

    def roll(self) -> None:
        """Begins a new segment: with a record, since only one that is late enough does."""
        bases = self._bases()
        self.clock_ms = max(self.clock_ms, self._marked_ms) + SEGMENT_MS + 1
        self.append([Record(b"roll %d" % next(_ids), b"")])
        wait_until(lambda: self._bases() != bases, "the segment does not roll")

    def clean(self) -> RecordedRound:
        """One round of Kafka's cleaner over everything below the active segment, and what it left."""
        before = self._stage()
        self.known |= {record.offset: record for record in self._committed() if record.offset is not None}
        cleaned = self._checkpoint()
        self.broker.alter_topic(self.name, min_cleanable_dirty_ratio=RELEASED)
        wait_until(lambda: self._checkpoint() > cleaned, "Kafka's cleaner does nothing", ROUND_S)
        now_ms = time.time_ns() // 1_000_000
        self.broker.alter_topic(self.name, min_cleanable_dirty_ratio=HELD)
        after = {**self._stage(), "first_uncleanable_offset": self._checkpoint(), "round_now_ms": now_ms}
        end = self.rounds[-1].fed if self.rounds else 0
        self.rounds.append(round_between(len(self.rounds) + 1, before, after, self.known, end))
        return self.rounds[-1]

    @property
    def case(self) -> dict[str, Any]:
        """As the recorded ones have it."""
        return {"topic_config": dict(self.config)}

    def _stamped(self, record: Record) -> Record:
        self.clock_ms += 1
        return Record(record.key, record.value, self.clock_ms, record.headers, 0)

    def _stage(self) -> dict[str, Any]:
        bases = self._bases()
        return {
            "segments": [{"base": base} for base in bases],
            "active_from": bases[-1],
            "high_watermark": self.broker.log_start_and_end(self.name)[1],
            "last_stable_offset": self.broker.log_start_and_end(self.name, committed=True)[1],
            "read_committed": [record.offset for record in self._committed()],
        }

    def _committed(self) -> list[Record]:
        return [record_of(found) for found in read_all(self.broker, self.name)]

    def _bases(self) -> list[int]:
        """Base offsets of the segments; a round swaps files, so that there may be none for a moment."""
        return sorted(int(path.stem) for path in (self.broker.data / f"{self.name}-0").glob("*.log"))

    def _is_stable(self) -> bool:
        return len({self.broker.log_start_and_end(self.name, committed=c) for c in (False, True)}) == 1

    def _checkpoint(self) -> int:
        return cleaned_to(self.broker, self.name)


def set_policy(broker: KafkaBroker, topic: str, policy: str, **config: str) -> None:
    """Until clients are told so; the log itself may have it a moment later."""
    broker.alter_topic(topic, cleanup_policy=policy, **config)
    cluster = Cluster({"bootstrap.servers": broker.address})
    wait_until(lambda: cluster.topic_config(topic)["cleanup.policy"] == policy, "the policy is as it was")


def cleaned_to(broker: KafkaBroker, topic: str, partition: int = 0) -> int:
    """Below which Kafka's cleaner has been; 0 if it never was there."""
    for line in (broker.data / "cleaner-offset-checkpoint").read_text().splitlines()[2:]:
        name, number, offset = line.split()
        if (name, number) == (topic, str(partition)):
            return int(offset)
    return 0
