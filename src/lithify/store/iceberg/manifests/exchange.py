"""What an edit changes in the manifests of one branch.

edit                              manifests of data          manifests of deletes
remove a            add b         - a           + b
remove a, mask m    add b, n      - a           + b          - m        + n
remove a, mask m    add a, n      a stays as it is           - m        + n
"""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.manifest import DataFile, ManifestContent

from lithify.model.segment import Segment
from lithify.store.iceberg.manifests.mask_entries import mask_file
from lithify.store.iceberg.manifests.segment_entries import data_file


@dataclass(frozen=True, slots=True)
class Exchange:
    """The segments that an edit removes from the snapshot `head` of a branch and adds to it; None is an empty one."""

    branch: str
    head: int | None
    add: tuple[Segment, ...]
    remove: tuple[Segment, ...]

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions whose manifests may lose an entry."""
        return frozenset(segment.partition for segment in self.remove)

    def added(self, content: ManifestContent) -> list[DataFile]:
        """The new entries of manifests with this content."""
        return _entries(self.add, self.remove, content)

    def removed(self, content: ManifestContent) -> list[DataFile]:
        """The entries that these manifests are to lose."""
        return _entries(self.remove, self.add, content)


def _entries(segments: tuple[Segment, ...], others: tuple[Segment, ...], content: ManifestContent) -> list[DataFile]:
    """The entries of some segments for files that `others` do not need."""
    if content is ManifestContent.DATA:
        paths = {segment.path for segment in others}
        return [data_file(segment) for segment in segments if segment.path not in paths]
    paths = {segment.mask.path for segment in others if segment.mask is not None}
    return [mask_file(s, s.mask) for s in segments if s.mask is not None and s.mask.path not in paths]
