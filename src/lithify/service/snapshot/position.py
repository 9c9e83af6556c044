"""The position of a consumer as text, the same in files (`position_file.py`) and in tables that are kept beside it.

{"format": 2, "lake": "orders", "kafka": "orders", "kafka_id": "...", "places": {"0": {"offset": 17, ...}}}

A place in a topic of Kafka may have `leader_epoch`, `[offset, epoch]`: everything below that offset was read in this
epoch. It may also have `last`: offset, timestamp and checksum of the last record (C72). An earlier Lithify ignores
both, and `ends`, which is what `logs` is in `source_ends.json` (C71). For a topic of Pulsar the keys are `pulsar` and
`pulsar_id`, and a place also has `message`, the id up to which all was processed: `[ledger, entry, batch index]`.
Format 1 had no id of the topic, and its cursors no epochs.
`checksum` is that of all else (C48); earlier versions neither write nor read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any, Protocol

from lithify.columnar.files.sealed import CHECKSUM, checksum_of_json
from lithify.errors import InvalidInputError
from lithify.model.cursor import Cursor
from lithify.model.message import MessageId
from lithify.model.sources.ends import Ends, ends_from_json, ends_to_json
from lithify.model.sources.source import ComparedRecord, EpochAt
from lithify.service.snapshot.live import Reached

FORMAT = 2
SYSTEMS = ("Kafka", "Pulsar", "Lithify")


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """By partition the cursor after the last processed record, and the cluster's id of the topic, empty if unknown.

    `message_ids`: by partition the id of that record, in topics that have ids. `epochs`: what is known of the leader
    epochs of Kafka's logs (C72).
    """

    cursors: Mapping[int, Cursor]
    source_id: str = ""
    message_ids: Mapping[int, MessageId] = field(default_factory=dict)
    epochs: Mapping[int, EpochAt] = field(default_factory=dict)
    ends: Ends = field(default_factory=dict)
    """What is known of the ends of the cluster's logs (C71); nothing in positions of earlier versions."""
    lasts: Mapping[int, ComparedRecord] = field(default_factory=dict)
    """Of topics of Kafka the last record (C72); nothing in positions of earlier versions."""

    @staticmethod
    def of(cursors: Mapping[int, Cursor], source_id: str, reached: Mapping[int, Reached], ends: Ends) -> StoredPosition:
        """What is stored of a consumer with these cursors that has `reached` the cluster's logs up to there."""
        message_ids = {p: at.message for p, at in reached.items() if at.message is not None}
        epochs = {p: at.epoch for p, at in reached.items() if at.epoch}
        lasts = {p: at.last for p, at in reached.items() if at.last}
        return StoredPosition(cursors, source_id, message_ids, epochs, ends, lasts)

    def reached(self, partition: int, offset: int) -> Reached:
        """Where a consumer is in the cluster's log whose cursor is at `offset`."""
        message, epoch = self.message_ids.get(partition), self.epochs.get(partition)
        return Reached(offset, message, epoch, self.lasts.get(partition))


class PositionStore(Protocol):
    """Where a consumer finds its position, and stores it."""

    def load(self) -> StoredPosition: ...

    def store(self, position: StoredPosition) -> None: ...


@dataclass(frozen=True, slots=True)
class StartAt:
    """Where a consumer starts whose user stores the position, together with what was made of the records."""

    position: StoredPosition

    def load(self) -> StoredPosition:
        return self.position

    def store(self, position: StoredPosition) -> None: ...


@dataclass(frozen=True, slots=True)
class PositionText:
    """Positions of consumers of one topic of the lake and of its topic in the cluster, as text."""

    lake_topic: str
    source_topic: str
    system: str = "Kafka"

    def parsed(self, text: str | bytes, where: str, hint: str) -> StoredPosition:
        """Raises `InvalidInputError` for a text of something else: `where` it was, with a hint for its user."""
        key = self.system.lower()
        try:
            content = json.loads(text)
            if isinstance(content, dict) and content.pop(CHECKSUM, None) not in (None, checksum_of_json(content)):
                raise ValueError("its checksum differs, so it was changed after it was stored")
            if isinstance(content, dict) and "places" in content and key not in content:
                theirs = next((name for name in SYSTEMS if name.lower() in content), "another system")
                raise ValueError(
                    f"it was stored by a consumer that continues in {theirs}, but this one continues in {self.system}"
                )
            topics = (content["lake"], content[key])
            if content["format"] not in (1, FORMAT):
                raise ValueError(f"format {content['format']}")
            cursors = {int(partition): Cursor.from_json(cursor) for partition, cursor in content["places"].items()}
            message_ids = {
                int(partition): MessageId(*map(index, at["message"]))
                for partition, at in content["places"].items()
                if "message" in at
            }
            epochs = {
                int(partition): EpochAt(*map(index, at["leader_epoch"]))
                for partition, at in content["places"].items()
                if "leader_epoch" in at
            }
            lasts = {
                int(partition): ComparedRecord(*map(index, at["last"]))
                for partition, at in content["places"].items()
                if "last" in at
            }
            ends = ends_from_json({"logs": content.get("ends", {})})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInputError(f"{where}: it is not a position of this consumer: {error}", hint=hint) from error
        if topics != (self.lake_topic, self.source_topic):
            raise InvalidInputError(
                f"{where}: it is the position of {topics[0]} with {self.system}'s {topics[1]}, "
                f"not of {self.lake_topic} with {self.source_topic}",
                hint=hint.partition(",")[0],
            )
        return StoredPosition(cursors, str(content.get(f"{key}_id", "")), message_ids, epochs, ends, lasts)

    def text(self, position: StoredPosition) -> str:
        key = self.system.lower()
        places = {str(partition): cursor.to_json() for partition, cursor in sorted(position.cursors.items())}
        for partition, message in position.message_ids.items():
            places[str(partition)]["message"] = list(message)
        for partition, at in position.epochs.items():
            places[str(partition)]["leader_epoch"] = [at.offset, at.epoch]
        for partition, last in position.lasts.items():
            places[str(partition)]["last"] = [last.offset, last.timestamp_ms, last.checksum]
        content: dict[str, Any] = {
            "format": FORMAT,
            "lake": self.lake_topic,
            key: self.source_topic,
            f"{key}_id": position.source_id,
            "places": places,
        }
        if position.ends:
            content["ends"] = ends_to_json(position.ends)["logs"]
        return json.dumps({**content, CHECKSUM: checksum_of_json(content)})
