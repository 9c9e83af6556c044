"""The file of a consumer's cursors, which is replaced atomically.

{"format": 2, "lake": "orders", "kafka": "orders", "kafka_id": "...", "places": {"0": {"offset": 17, ...}}}

Format 1 had no id of Kafka's topic, and its cursors no epochs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lithify.columnar.files.durable import sync_folder
from lithify.errors import InvalidInputError, WarehouseError
from lithify.model.cursor import Cursor

FORMAT = 2


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """By partition the cursor after the last processed record, and the id of Kafka's topic, empty if unknown."""

    cursors: Mapping[int, Cursor]
    kafka_id: str = ""


@dataclass(frozen=True, slots=True)
class PositionFile:
    """The file of one consumer of one topic of the lake and of its topic in Kafka."""

    path: Path
    lake_topic: str
    kafka_topic: str

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
        try:
            found = json.loads(text)
            topics = (found["lake"], found["kafka"])
            if found["format"] not in (1, FORMAT):
                raise ValueError(f"format {found['format']}")
            cursors = {int(partition): Cursor.from_json(cursor) for partition, cursor in found["places"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            hint = "name another file, or remove this one to start again"
            raise InvalidInputError(f"{self.path}: not a position of ours: {error}", hint=hint) from error
        if topics != (self.lake_topic, self.kafka_topic):
            raise InvalidInputError(
                f"{self.path}: the position of {topics[0]} with Kafka's {topics[1]}, "
                f"not of {self.lake_topic} with {self.kafka_topic}",
                hint="name another file",
            )
        return StoredPosition(cursors, str(found.get("kafka_id", "")))

    def store(self, position: StoredPosition) -> None:
        """Replaces the file. Raises `WarehouseError` if it cannot be written."""
        told = {
            "format": FORMAT,
            "lake": self.lake_topic,
            "kafka": self.kafka_topic,
            "kafka_id": position.kafka_id,
            "places": {str(partition): cursor.to_json() for partition, cursor in sorted(position.cursors.items())},
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
