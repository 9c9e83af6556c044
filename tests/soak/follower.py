"""A reader that follows one log of a soak from its start, through every round (C3, C7).

Whatever it gets must be what was appended, in order. At the end it has seen everything that is left,
and of a backlog that is never trimmed everything that was ever in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lithify.api.topic import Topic
from lithify.errors import LogTruncatedError, OffsetOutOfRangeError, VersionSweptError
from lithify.model.cursor import Start
from lithify.model.record import Record
from lithify.service.read.fetch import LogReader
from soak.journal import LogJournal, TopicJournal, at


@dataclass(slots=True)
class Follower:
    """Follows one log; polled by the thread that feeds it."""

    topic: Topic
    journal: LogJournal
    compacted: bool
    seen: dict[int, Record] = field(default_factory=dict)
    swept: int = 0
    cut_off: int = 0
    findings: list[str] = field(default_factory=list)
    _reader: LogReader | None = None
    _truncations: int = 0

    @property
    def where(self) -> str:
        return f"{self.topic.name}[{self.journal.partition}] {'compacted' if self.compacted else 'plain'} follower"

    def poll(self) -> None:
        """Reads what there is now. Opens itself anew where the contract says that it must."""
        if self._reader is None:
            self._open("earliest")
        if not self._reads():  # what it has opened since it reads at once: it may be truncated before the next poll
            self._reads()

    def _reads(self) -> bool:
        """False if it had to be opened anew."""
        assert self._reader is not None
        try:
            for batch in self._reader.poll():
                for record in batch.records():
                    self._see(record)
        except LogTruncatedError:
            self.cut_off += 1
            lowest = min(self.journal.truncations[self._truncations :], default=self._reader.position)
            self._open(min(lowest, self._reader.position))
            return False
        except VersionSweptError:
            self.swept += 1
            self._open(self._reader.position)
            return False
        return True

    def finish(self, journal: TopicJournal, now_ms: int) -> None:
        """Reads to the end, and says what it should have seen and has not."""
        end = self.journal.end
        for _ in range(5):
            self.poll()
            if self._reader is not None and self._reader.position >= end:
                break
        else:
            self.findings.append(f"{self.where}: stands at {self._reader and self._reader.position} of {end}")
        settings = journal.settings
        wanted = (self.journal.compacted if self.compacted else self.journal.plain)(settings, now_ms)
        start = 0
        if settings.retention_bytes != -1 or (settings.trimming_groups and not self.compacted):
            # What went before it came to read is no loss of its own.
            start = self.topic.state().log(self.journal.partition).log_start_offset
        missed = [r for o, r in wanted.must.items() if o >= start and self.seen.get(o) != r]
        if missed:
            self.findings.append(f"{self.where}: has not seen {len(missed)} records that are left, such as {missed[0]}")

    def _see(self, record: Record) -> None:
        offset = at(record)
        if self.journal.by_offset.get(offset) != record:
            self.findings.append(f"{self.where}: got {record}, which no producer wrote")
        if self.seen and offset <= self._last:
            self.findings.append(f"{self.where}: got {offset} after {self._last}")
        self.seen[offset] = record

    @property
    def _last(self) -> int:
        return next(reversed(self.seen))

    def _open(self, start: Start) -> None:
        self._truncations = len(self.journal.truncations)
        if isinstance(start, int):  # what was truncated was never there
            self.seen = {o: r for o, r in self.seen.items() if o < start}
        try:
            self._reader = self._opened(start)
        except OffsetOutOfRangeError:
            self._reader = self._opened("earliest")

    def _opened(self, start: Start) -> LogReader:
        return self.topic.reader(self.journal.partition, start, compacted=self.compacted, follow=True)


def followers_of(topic: Topic, journal: TopicJournal) -> Iterator[Follower]:
    """A plain one of every log, and of a view a compacted one too."""
    for log in journal.logs:
        yield Follower(topic, log, compacted=False)
        if journal.settings.side_by_side:
            yield Follower(topic, log, compacted=True)
