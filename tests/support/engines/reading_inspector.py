"""The inspector that is right by definition over any files: it reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lithify.errors import LithifyError
from lithify.model.finding import Finding, FindingKind
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.ports.files import SegmentFiles
from lithify.testing.oracle_engine import records_of
from lithify.testing.oracle_inspector import OracleInspector


class ReadingInspector(OracleInspector):
    """The same over any files, which are read; it finds nothing in them but that they cannot be."""

    def __init__(self, files: SegmentFiles) -> None:
        self._readable = files

    def _file_findings(self, segment: Segment) -> Iterator[Finding]:
        try:
            self._records(segment)
        except LithifyError as error:
            yield Finding(segment.partition, FindingKind.FILE_DAMAGED, str(error), path=segment.path)

    def _records(self, segment: Segment) -> Sequence[Record]:
        return records_of(self._readable, segment)
