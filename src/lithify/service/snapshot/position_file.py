"""The file of a consumer's cursors, which is replaced atomically."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lithify.columnar.files.replaced import replacing
from lithify.errors import WarehouseError
from lithify.errors.given_files import read_given
from lithify.service.snapshot.position import PositionText, StoredPosition

LARGEST_FILE_BYTES = 64 * 2**20
"""Of the cursors of a hundred thousand partitions."""


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
            text = read_given(self.path, LARGEST_FILE_BYTES)
        except FileNotFoundError:
            return StoredPosition({})
        except OSError as error:
            raise WarehouseError(f"{self.path}: the position cannot be read: {error.strerror}") from error
        return self._format.parsed(text, str(self.path), "choose another file, or remove this one to start again")

    def store(self, position: StoredPosition) -> None:
        """Replaces the file. Raises `WarehouseError` if it cannot be written."""
        text = self._format.text(position).encode()
        try:
            with replacing(self.path) as file:
                file.write(text)
        except OSError as error:
            raise WarehouseError(f"{self.path}: the position cannot be stored: {error.strerror}") from error

    @property
    def _format(self) -> PositionText:
        return PositionText(self.lake_topic, self.source_topic, self.system)
