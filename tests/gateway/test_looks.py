"""What a person looks at: layouts, records, keys, cleaners; each against what the reader and the store say."""

from base64 import b64encode

import pytest

import lithify
from gateway.conftest import Served
from lithify.gateway.server.live.watched import Watched, WatchedLake
from lithify.reports.looks.layout import Part
from lithify.reports.looks.records import SHOWN_BYTES, shown_bytes
from lithify.service.look import layout as layouts
from lithify.testing import memory_lake

ORDERS = "/api/v1/topics/shop%2Forders"


def records(*pairs):
    return [lithify.Record(key=key, value=value) for key, value in pairs]


def a_topic(lake, **config):
    return lake.create_topic("shop/orders", 1, config=config)


def test_a_layout_has_every_segment_once_and_in_its_part(served: Served):
    topic = a_topic(served.lake)
    topic.append(records((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None)))
    topic.compact()
    topic.append(records((b"c", b"4")))
    topic.append(records((b"d", b"5")))
    (log,) = topic.layout().logs
    assert [run.part for run in log.runs] == [Part.CLEAN, Part.DIRTY, Part.DIRTY]
    assert sum(run.records for run in log.runs) == topic.info().records
    assert sum(run.bytes for run in log.runs) == topic.info().bytes
    assert (log.first_dirty_offset, log.horizon, log.log_end_offset) == (4, 6, 6)
    assert [(step.end_offset, step.tombstones) for step in log.steps] == [(4, 1)]
    told = served.ask("GET", f"{ORDERS}/layout").json()["logs"][0]
    assert told["runs"][1] == {
        "part": "dirty",
        "base_offset": 4,
        "end_offset": 5,
        "segments": 1,
        "records": 1,
        "bytes": log.runs[1].bytes,
        "tombstones": 0,
        "masked_records": 0,
    }


def test_what_is_too_young_is_waiting():
    topic = a_topic(memory_lake(), **{"min.compaction.lag.ms": 60_000})
    topic.append(records((b"a", b"1")))
    (log,) = topic.layout(partitions=[0]).logs
    assert [(run.part, log.horizon) for run in log.runs] == [(Part.WAITING, 0)]


def test_many_segments_become_few_runs_without_losing_any(monkeypatch):
    topic = a_topic(memory_lake())
    for number in range(40):
        topic.append(records((b"k%d" % number, b"v")))
    topic.compact()
    for number in range(30):
        topic.append(records((b"l%d" % number, b"v")))
    whole = topic.layout().logs[0]
    monkeypatch.setattr(layouts, "RUNS", 20)
    (log,) = topic.layout().logs
    assert len(log.runs) <= 22 < len(whole.runs)
    assert log.segments == sum(run.segments for run in log.runs) == sum(run.segments for run in whole.runs)
    assert sum(run.records for run in log.runs) == 70
    assert [run.base_offset for run in log.runs] == sorted(run.base_offset for run in log.runs)


def test_side_by_side_the_view_is_there_too():
    topic = a_topic(memory_lake(), **{"compaction.mode": "side-by-side"})
    topic.append(records((b"a", b"1"), (b"a", b"2")))
    topic.compact()
    (log,) = topic.layout().logs
    assert [run.records for run in log.runs] == [2]
    assert [run.records for run in log.view] == [1]


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_browsing_shows_what_a_reader_reads(served: Served, limit):
    topic = a_topic(served.lake)
    for number in range(9):
        topic.append(records((b"a%d" % (number % 4), b"%d" % number), (b"b", b"x")))
    topic.compact()
    topic.append(records((b"c", None)))
    read = list(topic.reader(0))
    latest = topic.browse(limit=limit)
    assert [record.offset for record in latest.records] == [record.offset for record in read][-limit:]
    first = served.ask("GET", f"{ORDERS}/browse", params={"start": 0, "limit": limit}).json()
    assert [record["offset"] for record in first["records"]] == [record.offset for record in read][:limit]
    assert first["next_offset"] == (read[limit].offset if limit < len(read) else None)
    assert latest.records[-1].value is None


def test_browsing_is_bounded(served: Served):
    a_topic(served.lake).append(records(*((b"k%d" % n, b"x" * 2**20) for n in range(12))))
    told = served.ask("GET", f"{ORDERS}/browse", params={"start": 0, "limit": 200}).json()
    assert 1 <= len(told["records"]) < 12
    assert told["records"][0]["value"]["cut"]
    assert told["records"][0]["value"]["bytes"] == 2**20
    assert served.ask("GET", f"{ORDERS}/browse", params={"limit": 201}).status_code == 400
    assert served.ask("GET", f"{ORDERS}/browse", params={"start": 99}).json()["code"] == "OffsetOutOfRange"


def test_a_key_has_its_latest_record_what_is_left_and_what_it_was(served: Served):
    topic = a_topic(served.lake)
    topic.append(records((b"a", b"1"), (b"b", b"1"), (b"a", b"2")))
    before = topic.compact().version - 1
    topic.append(records((b"a", b"3")))
    told = served.ask("GET", f"{ORDERS}/key", params={"key": b64encode(b"a").decode()}).json()
    assert told["latest"]["value"]["text"] == "3"
    assert [record["value"]["text"] for record in told["records"]] == ["3", "2"]
    assert [(one["version"], one["record"]["value"]["text"]) for one in told["versions"]] == [(before, "2")]
    assert (told["whole"], told["read_from"]) == (True, {"0": 1})
    gone = topic.key_history(b"none")
    assert (gone.latest, gone.records) == (None, ())


@pytest.mark.parametrize(
    ("value", "text", "cut"),
    [
        (b"plain", "plain", False),
        (b"\xff\x00", None, False),
        (b"x" * (SHOWN_BYTES + 1), "x" * SHOWN_BYTES, True),
        (b"x" * (SHOWN_BYTES - 1) + "é".encode() + b"y", "x" * (SHOWN_BYTES - 1), True),
    ],
)
def test_bytes_are_text_where_they_are(value, text, cut):
    shown = shown_bytes(value)
    assert (shown.text, shown.cut, shown.bytes) == (text, cut, len(value))
    assert (shown.base64 is None) is (text is not None)


def test_the_cleaners_of_a_catalog_say_what_they_hold(tmp_path):
    lake = lithify.open(str(tmp_path))
    topic = lake.create_topic("shop/orders", 2)
    assert lake.running_cleaners() == ()
    loop = lake.cleaner(cleaner_id="c1")
    loop.leases.register("c1")
    identity = topic.state().identity
    loop.leases.take([f"{identity}/1", "gone-topic/0"])
    from lithify.daemons.cleaner.note_writer import NoteWriter

    NoteWriter(loop.coordination, loop.options, loop.reporter, 5).write(7)
    (cleaner,) = lake.running_cleaners()
    assert WatchedLake(lake.warehouse, Watched(lake)).running_cleaners() == (cleaner,)
    assert (cleaner.cleaner, cleaner.started_ms, cleaner.looked_ms, cleaner.does_upkeep) == ("c1", 5, 7, False)
    assert [(log.topic, log.partition) for log in cleaner.logs] == [(None, 0), ("shop/orders", 1)]
