"""How manifests are written: as PyIceberg does, but many entries to a block.

PyIceberg compresses each entry by itself, to some 290 bytes. Entries of a manifest are alike: in blocks of
`ENTRIES_PER_BLOCK` they take a third of that, which each reader of a version reads. In blocks of more, fewer blocks
would be decoded side by side (`columns`).
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import DEFAULT_READ_VERSION, ManifestContent, ManifestEntry, ManifestWriterV2

ENTRIES_PER_BLOCK = 16


class SegmentWriter(ManifestWriterV2):
    """A manifest of segments."""

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        return _InBlocks(
            output_file=self._output_file,
            file_schema=self._with_partition(self.version),
            record_schema=self._with_partition(DEFAULT_READ_VERSION),
            schema_name="manifest_entry",
            metadata=self._meta,
        )


class MaskWriter(SegmentWriter):
    """A manifest of masks."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _InBlocks(AvroOutputFile[ManifestEntry]):
    def __enter__(self) -> Self:
        self._waiting: list[ManifestEntry] = []
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._waiting:
                super().write_block(self._waiting)
        finally:
            super().__exit__(kind, error, trace)

    def write_block(self, objects: list[ManifestEntry]) -> None:
        self._waiting += objects
        if len(self._waiting) >= ENTRIES_PER_BLOCK:
            super().write_block(self._waiting)
            self._waiting = []
