"""Readers that go on after the topic has changed, held to its textbook (C3, C7, C36, C49).

    follower    one reader, version after version, at the same offset
    taker       opens a reader at the cursor that it kept, folds what comes, keeps its cursor, and goes away

Each gets exactly what the textbook has from its offset on, or gets an error: always where it has missed a
delete, and only where its cursor is lost or one may be gone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from lithify.errors import LogTruncatedError
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.model.topic.log import TRUNCATIONS_KEPT
from lithify.rules.reading.pieces import Reading
from lithify.service.read.fetch import LogReader, open_log
from support.checked.topic import CheckedTopic
from support.textbook.log import TextbookLog
from support.textbook.records import Records, at, deletes, order


@dataclass(slots=True)
class Taken:
    """How far one log was taken, when it was in that epoch and had been truncated so often."""

    partition: int
    compacted: bool
    offset: int = 0
    epoch: int = 0
    cuts: int = 0

    def must_be_told(self, log: TextbookLog) -> bool:
        """Its cursor is no longer in the log, or it would miss a delete."""
        below = any(cut < self.offset for cut in log.cuts[self.cuts :])
        lost = below or log.first_place(compacted=self.compacted) > self.offset
        return lost or log.missed(self.offset, self.epoch, compacted=self.compacted)[0]

    def may_be_told(self, log: TextbookLog) -> bool:
        missed = log.missed(self.offset, self.epoch, compacted=self.compacted)[1]
        return self.must_be_told(log) or missed or len(log.cuts) - self.cuts > TRUNCATIONS_KEPT

    def rest(self, log: TextbookLog) -> Records:
        return tuple(r for r in log.reading(compacted=self.compacted) if at(r) >= self.offset)

    def move(self, log: TextbookLog, offset: int) -> None:
        self.offset, self.epoch, self.cuts = offset, log.epoch, len(log.cuts)


@dataclass(slots=True)
class Follower:
    """A reader that goes on with new versions, at the same offset (C3, C7)."""

    topic: CheckedTopic
    taken: Taken
    reader: LogReader

    @classmethod
    def open(cls, topic: CheckedTopic, partition: int, *, compacted: bool) -> Follower:
        how = Reading(follow=True, compacted=compacted)
        log = topic.model.logs[partition]
        reader = open_log(topic.place.warehouse, topic.state, partition, "earliest", how)
        assert tuple(r for b in reader.poll() for r in b.records()) == log.reading(compacted=compacted)
        taken = Taken(partition, compacted)
        taken.move(log, log.end)
        return cls(topic, taken, reader)

    def poll(self) -> bool:
        """Reads what is new; returns whether it can go on."""
        log, taken = self.topic.model.logs[self.taken.partition], self.taken
        wanted = taken.rest(log)
        try:
            available = self.reader.has_message_available()
            got = tuple(record for batch in self.reader.poll() for record in batch.records())
        except LogTruncatedError as error:
            assert taken.may_be_told(log), f"nothing is lost, and no delete is gone: {error}"
            return False
        assert not taken.must_be_told(log), "it went on where it has missed something (C7, C49)"
        assert got == wanted
        assert available == bool(wanted)
        assert self.reader.position == log.end
        taken.move(log, log.end)
        return True


@dataclass(slots=True)
class Taker:
    """Folds a log to the latest record of each key, some records at a time, each time from its kept cursor."""

    topic: CheckedTopic
    taken: Taken
    cursor: str = ""
    """As JSON; nothing before the first time."""
    folded: dict[bytes, Record] = field(default_factory=dict)
    folds: tuple[object, ...] | None = None
    """What decided and deleted when it began, and how often records had come back."""

    def take(self, most: int) -> bool:
        """Takes up to so many records, or all that there are; returns whether it can go on."""
        topic, taken = self.topic, self.taken
        state, log = topic.state, topic.model.logs[taken.partition]
        start = Cursor.from_json(json.loads(self.cursor)) if self.cursor else "earliest"
        if not self.cursor:
            taken.move(log, log.first_place(compacted=taken.compacted))
            self.folds = self._folds_by()
        wanted = taken.rest(log)
        try:
            reader = open_log(topic.place.warehouse, state, taken.partition, start, Reading(compacted=taken.compacted))
        except LogTruncatedError as error:
            assert taken.may_be_told(log), f"nothing is lost, and no delete is gone: {error}"
            return False
        assert not taken.must_be_told(log), "it went on where it has missed something (C7, C49)"
        got: list[Record] = []
        while len(got) < most and (record := reader.read_next()) is not None:
            got.append(record)
        assert tuple(got) == wanted[:most]
        self.cursor = json.dumps(reader.cursor().to_json())
        taken.move(log, reader.position)
        return self._fold(got, log)

    def _fold(self, got: list[Record], log: TextbookLog) -> bool:
        """False once what was folded before is folded by other rules, or may have come back."""
        settings = self.topic.model.settings
        if self.folds != self._folds_by():
            return False
        for record in got:
            if record.key is not None:
                old = self.folded.get(record.key)
                self.folded[record.key] = record if old is None else max(old, record, key=self._rank)
        if self.taken.offset < log.end:
            return True
        there: dict[bytes, Record] = {}
        for record in log.reading(compacted=self.taken.compacted):
            if record.key is not None:
                there[record.key] = max(there.get(record.key, record), record, key=self._rank)
        for key, record in there.items():
            mine = self.folded.get(key)
            if mine is None or self._rank(mine) < self._rank(record):
                assert mine is None and deletes(record, settings), f"it has {mine}, and missed {record}"
        for key, mine in self.folded.items():
            if deletes(mine, settings) or there.get(key) == mine:
                continue
            assert self._may_keep(mine, log), f"{mine} was deleted, and it was not told (C49)"
        return True

    def _may_keep(self, mine: Record, log: TextbookLog) -> bool:
        """A value may outlive the log for its age, or what superseded it was taken for its own (C24, C26)."""
        before = at(mine) < log.first_place(compacted=self.taken.compacted)
        return before or any(r.key == mine.key and self._rank(r) >= self._rank(mine) for r in log.aged)

    def _rank(self, record: Record) -> tuple[int, int]:
        return order(record, self.topic.model.settings), at(record)

    def _folds_by(self) -> tuple[object, ...]:
        settings, back = self.topic.model.settings, self.topic.model.brought_back
        return settings.compaction_strategy, settings.empty_value, settings.compaction_mode, back
