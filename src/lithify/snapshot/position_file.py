"""The file of a consumer's cursors, which is replaced atomically.

{"format": 2, "lake": "orders", "kafka": "orders", "kafka_id": "...", "places": {"0": {"offset": 17, ...}}}

Of a topic of Pulsar the keys are `pulsar` and `pulsar_id`, and a place also has `message`, the id up to which all was
processed: `[ledger, entry, batch index]`. Format 1 had no id of the topic, and its cursors no epochs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from pathlib import Path

from lithify.columnar.files.durable import sync_folder
from lithify.errors import InvalidInputError, WarehouseError
from lithify.model.cursor import Cursor
from lithify.model.message import MessageId

FORMAT = 2


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """By partition the cursor after the last processed record, and the cluster's id of the topic, empty if unknown.

    `message_ids`: by partition the id of that record, in topics that have ids.
    """

    cursors: Mapping[int, Cursor]
    source_id: str = ""
    message_ids: Mapping[int, MessageId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PositionFile:
    """The file of one consumer of one topic of the lake and of its topic in the cluster."""

    path: Path
    lake_topic: str
    source_topic: str
    system: str = "Kafka"

    def load(self) -> StoredPosition:
        """The stored cursors; none if there is no file yet.

        Raises `InvalidInputError` for a file of something else, `WarehouseError` if it cannot be read.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return StoredPosition({})
        except OSError as error:
            raise WarehouseError(f"{self.path}: the position cannot be read: {error.strerror}") from error
        key = self.system.lower()
        try:
            found = json.loads(text)
            topics = (found["lake"], found[key])
            if found["format"] not in (1, FORMAT):
                raise ValueError(f"format {found['format']}")
            cursors = {int(partition): Cursor.from_json(cursor) for partition, cursor in found["places"].items()}
            message_ids = {
                int(partition): MessageId(*map(index, at["message"]))
                for partition, at in found["places"].items()
                if "message" in at
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            hint = "name another file, or remove this one to start again"
            raise InvalidInputError(f"{self.path}: not a position of ours: {error}", hint=hint) from error
        if topics != (self.lake_topic, self.source_topic):
            raise InvalidInputError(
                f"{self.path}: the position of {topics[0]} with {self.system}'s {topics[1]}, "
                f"not of {self.lake_topic} with {self.source_topic}",
                hint="name another file",
            )
        return StoredPosition(cursors, str(found.get(f"{key}_id", "")), message_ids)

    def store(self, position: StoredPosition) -> None:
        """Replaces the file. Raises `WarehouseError` if it cannot be written."""
        key = self.system.lower()
        places = {str(partition): cursor.to_json() for partition, cursor in sorted(position.cursors.items())}
        for partition, message in position.message_ids.items():
            places[str(partition)]["message"] = list(message)
        told = {
            "format": FORMAT,
            "lake": self.lake_topic,
            key: self.source_topic,
            f"{key}_id": position.source_id,
            "places": places,
        }
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            new.unlink(missing_ok=True)  # left by a crash, or a symlink of another user to some other file
            with new.open("x", encoding="utf-8") as file:
                json.dump(told, file)
                file.flush()
                os.fsync(file.fileno())  # without it a power cut may leave an empty file
            new.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise WarehouseError(f"{self.path}: the position cannot be stored: {error.strerror}") from error
