"""Readers over HTTP: pages of one log from any gateway, each of which continues where the last one has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from gateway.records.exchanges import ARROW, LINES, rows_in
from lithify.errors import OffsetOutOfRangeError
from lithify.gateway.server.records.places import Place
from lithify.model.cursor import Start
from lithify.model.record import Record
from soak.follower import Follower
from soak.gateways.asking import Gateways, NoAnswerError, path_of
from soak.journal import TopicJournal

LARGEST_PAGE = 500


@dataclass(frozen=True, slots=True)
class Page:
    """Records as they came."""

    found: list[Record]

    def records(self) -> list[Record]:
        return self.found


@dataclass(slots=True)
class HttpReader:
    """A reader of one log, with what a follower needs of `LogReader`."""

    gateways: Gateways
    topic: str
    partition: int
    start: Start
    luck: Random
    compacted: bool = False
    cursor: str | None = None

    @property
    def position(self) -> int:
        """The offset at which the next read continues."""
        if self.cursor is None:
            return self.start if isinstance(self.start, int) else 0
        at = Place.parsed(self.cursor).at
        return at if isinstance(at, int) else at.offset

    def poll(self) -> Iterator[Page]:
        """The pages that there are now; fewer if a gateway does not answer. Raises what a gateway tells."""
        more = True
        while more:
            media = self.luck.choice((LINES, ARROW))
            params = {"encoding": "base64", "partition": self.partition, "max": self.luck.randint(1, LARGEST_PAGE)}
            params |= {"compacted": "true"} if self.compacted else {}
            params |= {"from": str(self.start)} if self.cursor is None else {"cursor": self.cursor}
            url, path = self.luck.choice(self.gateways.all), f"{path_of(self.topic)}/records"
            try:
                answer = self.gateways.ask(url, "GET", path, params=params, headers={"Accept": media})
            except NoAnswerError:
                return
            self.cursor = answer.headers["Lithify-Cursor"]
            more = "next" in answer.links
            yield Page([_record(row) for row in rows_in(answer.content, media)])


def _record(row: tuple[object, ...]) -> Record:
    partition, offset, timestamp, key, value, headers = row
    return Record(key, value, timestamp, headers, partition, offset)  # type: ignore[arg-type]


@dataclass(slots=True)
class HttpFollower(Follower):
    """Follows one log over HTTP. It has to finish while gateways run."""

    gateways: Gateways = field(kw_only=True)
    luck: Random = field(kw_only=True)
    has_finished: bool = field(default=False, kw_only=True)

    @property
    def where(self) -> str:
        return f"{Follower.where.fget(self)} over HTTP"  # type: ignore[attr-defined]

    def finish(self, journal: TopicJournal, now_ms: int) -> None:
        if not self.has_finished:
            self.has_finished = True
            Follower.finish(self, journal, now_ms)

    def _reads(self) -> bool:
        try:
            return Follower._reads(self)
        except OffsetOutOfRangeError:
            assert isinstance(self._reader, HttpReader)
            if self._reader.cursor is not None:
                raise
            self._open("earliest")  # retention has come first; a reader that is opened in Python is told then
            return False

    def _opened(self, start: Start) -> HttpReader:  # type: ignore[override]
        return HttpReader(
            self.gateways, self.topic.name, self.journal.partition, start, self.luck, compacted=self.compacted
        )
