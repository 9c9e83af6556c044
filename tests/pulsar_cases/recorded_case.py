"""The recorded cases as records and offsets, and where we differ from Pulsar on purpose.

message id  57:0:0  57:0:1  57:1:-1  57:2:-1       (ledger, entry, index in the batch)
offset           0       1        2        3       in the order of the ids
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lithify.model.cursor import Start
from lithify.model.record import Record
from lithify.model.topic.log import LastRecord

DATA = Path(__file__).parent / "data"
CASES = {path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))}

BY_EVENT_TIME = "org.apache.pulsar.compaction.EventTimeCompactionServiceFactory"


@dataclass(frozen=True, slots=True)
class Difference:
    """Offsets that only one side has in its compacted data, and why."""

    only_pulsar: frozenset[int]
    only_here: frozenset[int]
    why: str


BY_TIME = (
    "C10, C11: of two messages with one event time Pulsar keeps the earlier one if the later one was sent in a "
    "batch; and it forgets a tombstone with its time, so that an older value which was sent later comes back"
)

DIFFERENCES = {
    ("encrypted_batch_loss", 4): Difference(
        only_pulsar=frozenset({4, 5}),
        only_here=frozenset({1}),
        why="C3, C4: Pulsar takes an encrypted batch for one message with the key of its first: it lost k1 (offset "
        "1) with the batch of k0, and kept a value of k3 and the tombstone that deletes it",
    ),
    ("fuzz_event_time_21", 11): Difference(frozenset({12, 27, 31}), frozenset({25}), BY_TIME),
    ("fuzz_event_time_21", 16): Difference(frozenset({31, 45}), frozenset({40, 52}), BY_TIME),
    ("fuzz_event_time_21", 17): Difference(frozenset({31, 45}), frozenset({40, 52}), BY_TIME),
}
"""By case and steps so far: what differs on purpose. `encrypted_batch_loss` records a loss of Pulsar's."""


@dataclass(frozen=True)
class RecordedCase:
    """A case as offsets and records: those that were sent, numbered in the order of their ids."""

    name: str
    data: Mapping[str, Any]

    @cached_property
    def records(self) -> list[Record]:
        return [self.record(message, offset) for offset, message in enumerate(self.data["sent"])]

    @cached_property
    def offsets(self) -> dict[tuple[int, int, int], int]:
        return {id_of(message["message_id"]): offset for offset, message in enumerate(self.data["sent"])}

    @property
    def config(self) -> dict[str, object]:
        broker = self.data["broker_config"]
        config: dict[str, object] = {}
        if broker.get("topicCompactionRetainNullKey") == "true":
            config["null.key"] = "retain"
        if self.by_event_time:
            config["compaction.strategy"] = "timestamp"
        assert len(config) == len(broker)  # no setting of the broker is left out
        return config

    @property
    def by_event_time(self) -> bool:
        return bool(self.data["broker_config"].get("compactionServiceFactoryClassName") == BY_EVENT_TIME)

    def record(self, message: Mapping[str, Any], offset: int | None = None) -> Record:
        """A message with all it carries; what a record has no place for goes into headers."""
        given = self.offsets[id_of(message["message_id"])] if offset is None else offset
        metadata = {"event_time": message["event_time"], "ordering_key": message["ordering_key_b64"]}
        headers = [(f"pulsar.{name}", str(value).encode()) for name, value in metadata.items() if value]
        headers += [(name, value.encode()) for name, value in message["properties"].items()]
        assert not message["key_b64"]
        return Record(
            key=None if message["key"] is None else message["key"].encode(),
            value=None if message["payload_b64"] is None else b64decode(message["payload_b64"]),
            timestamp=message["event_time" if self.by_event_time else "publish_time"],
            headers=tuple(headers),
            partition=0,
            offset=given,
        )

    def position(self, recorded_id: Mapping[str, int]) -> LastRecord | None:
        """Where the message with this id stands; None for Pulsar's id of nothing."""
        if recorded_id["entry"] < 0:
            return None
        offset = self.offsets[id_of(recorded_id)]
        timestamp = self.records[offset].timestamp
        assert timestamp is not None
        return LastRecord(offset, timestamp)

    def reads(self, messages: Sequence[Mapping[str, Any]]) -> list[Record]:
        return [self.record(message) for message in messages]

    def checkpoints(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """What was seen, by how many steps came before: after some compactions, and at the end."""
        for seen in self.data["checkpoints"]:
            yield seen["after_step"], seen
        yield len(self.data["steps"]), self.data


def id_of(recorded: Mapping[str, int]) -> tuple[int, int, int]:
    return recorded["ledger"], recorded["entry"], recorded["batch_index"]


RECORDED = {name: RecordedCase(name, data) for name, data in CASES.items()}


def start_of(case: RecordedCase, recorded: Mapping[str, Any]) -> Start:
    """Pulsar's start is with the given id or behind it; an offset is always with it."""
    if recorded["start"] == "latest":
        return "latest"
    return case.offsets[id_of(recorded["start"])] + (0 if recorded["inclusive"] else 1)


def expected(case: RecordedCase, steps: int, seen: Mapping[str, Any]) -> list[Record]:
    """What a reader of compacted data has to get here: what it got from Pulsar, and what differs on purpose."""
    pulsar = case.reads(seen["compacted_read"])
    difference = DIFFERENCES.get((case.name, steps))
    if difference is None:
        return pulsar
    there = {record.offset for record in pulsar}
    assert difference.only_pulsar <= there  # a difference that is none is not listed
    assert not difference.only_here & there
    offsets = (there - difference.only_pulsar) | difference.only_here
    return [record for record in case.records if record.offset in offsets]


def last_record(records: Sequence[Record]) -> LastRecord | None:
    if not records:
        return None
    assert records[-1].offset is not None
    assert records[-1].timestamp is not None
    return LastRecord(records[-1].offset, records[-1].timestamp)
