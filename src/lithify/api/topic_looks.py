"""The Python API of one topic: what a person is shown. The layout of its logs, a few records, one key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.api.topic_table import TopicTable

if TYPE_CHECKING:
    from lithify.reports.looks.layout import TopicLayout
    from lithify.reports.looks.records import KeyReport, RecordsReport


@dataclass(frozen=True, slots=True, repr=False)
class TopicLooks(TopicTable):
    """The part of `Topic` that answers a person; all answers are bounded."""

    def layout(self, *, partitions: Sequence[int] | None = None) -> TopicLayout:
        """Where segments, tombstones and masks lie along the offsets of its logs. Metadata only.

        Neighbours are one run where there are many. Raises `UnknownTopicError` for a partition that does not exist.
        """
        from lithify.service.look.layout import topic_layout

        return topic_layout(self.warehouse, self.warehouse.store.load(self.topic_name), partitions)

    def browse(self, partition: int = 0, *, start: int | None = None, limit: int = 50) -> RecordsReport:
        """A few records of a log from an offset on, or without one the latest; long values are cut.

        At most 200, of 8 MiB together. Raises `UnknownTopicError`, `OffsetOutOfRangeError` or `InvalidInputError`.
        """
        from lithify.service.read.shown import records_report

        return records_report(self.warehouse, self.topic_name, partition, start, limit)

    def key_history(self, key: bytes) -> KeyReport:
        """The latest record of a key, those in the newest part of the logs, and its records at retained versions.

        It reads at most the newest 50,000 records of 8 logs. Raises `UnknownTopicError`, and what reading raises.
        """
        from lithify.service.read.shown import key_report

        return key_report(self.warehouse, self.topic_name, key)
