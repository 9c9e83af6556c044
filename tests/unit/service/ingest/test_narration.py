"""What an ingest says between its batches: where it begins, that it waits, that its source is away and back."""

from __future__ import annotations

from lithify.model.sources.source import IngestRequest
from lithify.reports.ingest import IngestBatch, IngestedEntries, IngestedLog, IngestNote
from lithify.service.ingest.narration import LOOK_MS, Narration
from lithify.service.ingest.system_outages import QUIET_MS, SILENT_MS
from lithify.testing.fake_clock import FakeClock
from support.topics.listed_source import ListedSource
from support.topics.memory_topic import a_warehouse


class Told:
    """A narration on a clock of its own, and its notes."""

    def __init__(self, *, continuous: bool = True) -> None:
        self.notes: list[IngestNote] = []
        self.clock = FakeClock()
        self.source = ListedSource(a_warehouse(), {})
        request = IngestRequest({}, topics=("orders",), continuous=continuous)
        self.narration = Narration(self.source, request, self.clock, self.notes.append)

    def said(self) -> list[str]:
        texts = [note.text for note in self.notes]
        self.notes.clear()
        return texts

    def looks(self, for_ms: int) -> list[str]:
        for _ in range(for_ms // LOOK_MS):
            self.clock.advance(LOOK_MS)
            self.narration.look()
        return self.said()


def a_log(end: int, source_end: int) -> IngestedLog:
    return IngestedLog(0, end, source_end, 0)


def test_where_a_copy_begins_and_how_far_it_is_behind() -> None:
    told = Told()
    told.narration.begins("orders", "copy", (a_log(0, 7),))
    told.narration.begins("orders", "copy", (a_log(5, 6),))
    told.narration.begins("orders", "copy", (a_log(5, 6), a_log(0, 2000)))
    told.narration.begins("orders", "copy", (IngestedEntries(0, 5, "1:2", "2:3", 0, None),))
    told.narration.begins("orders", "copy", (IngestedEntries(0, 5, "1:2", "1:3", 0, 1),))
    assert told.said() == [
        "orders → copy: begins, lag 7 offsets",
        "orders → copy: continues at offset 5, lag 1 offset",
        "orders → copy: continues, lag 2,001 offsets",
        "orders → copy: continues at offset 5, lag not known",
        "orders → copy: continues at offset 5, lag 1 entry",
    ]
    told.narration.begins("orders", "copy", (a_log(5, 6),))
    assert told.notes[-1].to_json() == {
        "event": "begins",
        "text": "orders → copy: continues at offset 5, lag 1 offset",
        "source": "orders",
        "topic": "copy",
        "logs": [{"partition": 0, "log_end_offset": 5, "source_end_offset": 6, "records": 0, "lag": 1}],
        "error_code": None,
    }


def test_that_it_waits_is_said_once_in_a_while() -> None:
    told, waiting = Told(), "orders → copy: everything is copied; waiting for new records"

    def batch(end: int, source_end: int) -> list[str]:
        told.narration.copied(IngestBatch("copy", "orders", 3, (a_log(end, source_end),), 1))
        return told.said()

    assert batch(5, 6) == []
    assert batch(6, 6) == [waiting]
    assert batch(7, 7) == []
    told.clock.advance(QUIET_MS)
    assert batch(8, 8) == [waiting]
    once = Told(continuous=False)
    once.narration.begins("orders", "copy", (a_log(6, 6),))
    assert [note.event for note in once.notes] == ["begins"], "it ends, and does not wait"


def test_an_outage_and_its_end() -> None:
    told = Told()
    assert told.looks(2 * SILENT_MS) == []
    told.source.is_silent = True
    assert told.looks(SILENT_MS) == []
    assert told.looks(LOOK_MS) == ["Listed at a list has not answered for 5.0 s; waiting for it"]
    assert told.looks(QUIET_MS - LOOK_MS) == []
    assert told.looks(LOOK_MS) == ["Listed at a list has not answered for 1 min 5 s; waiting for it"]
    told.source.is_silent = False
    assert told.looks(LOOK_MS) == ["Listed at a list answers again, after 1 min 6 s"]
    assert told.looks(2 * SILENT_MS) == []
    told.source.is_silent = True
    told.looks(SILENT_MS - LOOK_MS)
    told.source.is_silent = False
    assert told.looks(SILENT_MS) == [], "too short to be told"
