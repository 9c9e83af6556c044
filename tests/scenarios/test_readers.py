"""What readers may rely on while a log is compacted under them (C3, C5, C7, C8, C32, C33, C36, C49)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.api.topic import Topic
from lithify.errors import DamagedError, LogTruncatedError, RefusedError, UnknownTopicError, VersionSweptError
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.model.topic.log import LastRecord
from lithify.service.change.alter import uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from support.builders import a_log, draw
from support.topics.memory_topic import ORDERS, MemoryTopic

HOUR = 3_600_000
DAY = 24 * HOUR


def append(topic, text):
    topic.append([r._replace(offset=None, timestamp=None) for r in a_log(text).records])


def drawn(records):
    return draw([records])


def test_a_reader_from_the_start_sees_every_winner_and_everything_dirty():
    """C3: also one whose reading lasts for several rounds, by offsets."""
    topic = MemoryTopic(min_compaction_lag_bytes=40)
    append(topic, "a=1 b=1 a=2")
    append(topic, "c=1")
    append(topic, "c=2 d=1")
    topic.compact()
    assert topic.log().first_dirty_offset == 4
    assert drawn(topic.records()) == "b=1@1 a=2@2 c=1@3 c=2@4 d=1@5"


def test_a_reader_that_keeps_up_sees_every_record_ever_appended():
    """C3: it stays at or above the horizon of every round."""
    topic = MemoryTopic(delete_retention_ms=0)
    follower = topic.reader(follow=True)
    seen = []
    for value in range(20):
        append(topic, f"a={value} b={value} a=∅")
        seen += [r for batch in follower.poll() for r in batch.records()]
        topic.compact()
    assert len(seen) == 60
    assert [r.offset for r in seen] == list(range(60))


def test_a_delete_can_be_seen_for_as_long_as_was_promised():
    """C5: a reader that gets from S to H within delete.retention.ms after the round sees it."""
    topic = MemoryTopic(now_ms=0, delete_retention_ms=HOUR)
    append(topic, "a=1 b=1 a=∅")
    topic.compact(now_ms=5 * HOUR)  # the first round that covers it, long after it was written
    for minutes in range(0, 60, 7):
        topic.compact(now_ms=5 * HOUR + minutes * 60_000)
        assert drawn(topic.records()) == "b=1@1 a=∅@2"
    topic.compact(now_ms=6 * HOUR)
    assert drawn(topic.records()) == "b=1@1"


def test_a_following_reader_fails_when_the_log_start_has_passed_it():
    """C7: records in between would be missed in silence."""
    topic = MemoryTopic()
    append(topic, "a=1 a=2 a=3")
    behind = topic.reader(start="latest", follow=True)
    append(topic, "b=1")
    at_it = topic.reader(start="latest", follow=True)
    append(topic, "c=1")
    topic.edit(log_start_offset=4, first_dirty_offset=4)
    with pytest.raises(LogTruncatedError, match="starts at 4 now"):
        list(behind.poll())
    assert polled(at_it) == "c=1@4"


def test_asking_for_compacted_data_changes_nothing_in_place():
    """C32: the compacted log replaces the old one for every reader."""
    memory = MemoryTopic()
    append(memory, "a=1 a=2")
    append(memory, "b=1")
    topic = Topic(memory.warehouse, ORDERS)
    for _ in range(2):
        plain, compacted = (list(topic.reader(0, compacted=asked)) for asked in (False, True))
        assert plain == compacted
        memory.compact()
    assert drawn(topic.reader(0)) == drawn(topic.reader(0, compacted=True)) == "a=2@1 b=1@2"


def test_a_reader_never_waits_for_a_last_record_that_was_compacted_away():
    """C36: from metadata alone; what it says is there is what a read returns."""
    topic = MemoryTopic(delete_retention_ms=0)
    append(topic, "a=1")
    append(topic, "b=∅")
    old = topic.reader()
    topic.compact()
    new = topic.reader()
    assert (old.last_message_id(), new.last_message_id()) == (LastRecord(1, 1000), LastRecord(0, 1000))
    topic.files.data.clear()  # no file is opened to know it
    assert new.has_message_available()
    new.seek(1)
    assert not new.has_message_available()


def test_a_following_reader_asks_the_newest_version_for_the_last_record():
    """C36."""
    topic = MemoryTopic()
    plain, follower = topic.reader(), topic.reader(follow=True)
    append(topic, "a=1")
    assert (plain.has_message_available(), follower.has_message_available()) == (False, True)
    assert follower.last_message_id() == LastRecord(0, 1000)


BESIDE = {"compaction_mode": "side-by-side", "delete_retention_ms": 0}


def polled(reader):
    return drawn(r for batch in reader.poll() for r in batch.records())


def test_a_compacted_reader_crosses_the_horizon_in_one_order():
    """C33: from any place, the view below D and the backlog from there on."""
    topic = MemoryTopic(**BESIDE)
    append(topic, "a=1 b=1 | a=2 c=1")
    topic.compact()
    append(topic, "b=2")
    whole = topic.records(compacted=True)
    assert drawn(whole) == "b=1@1 a=2@2 c=1@3 b=2@4"
    for start in range(1, 6):
        assert list(topic.reader(start=start, compacted=True)) == [r for r in whole if r.offset >= start]


def test_a_plain_reader_never_gets_what_only_the_view_has():
    """C33."""
    topic = MemoryTopic(cleanup_policy="compact,delete", retention_ms=10, **BESIDE)
    append(topic, "a=1")
    topic.compact()
    topic.clock.advance(11)
    append(topic, "b=1")
    topic.compact()
    assert (drawn(topic.records()), drawn(topic.records(compacted=True))) == ("b=1@1", "a=1@0 b=1@1")


def test_a_following_compacted_reader_goes_on_behind_a_round():
    """C33, C7: at the same offset; what the round took from below it was seen before."""
    topic = MemoryTopic(compaction_mode="side-by-side")
    append(topic, "a=1 b=1")
    follower = topic.reader(follow=True, compacted=True)
    assert polled(follower) == "a=1@0 b=1@1"
    append(topic, "a=2 a=3 b=∅")
    topic.compact()
    append(topic, "c=1")
    assert polled(follower) == "a=3@3 b=∅@4 c=1@5"
    assert polled(follower) == ""


def test_a_reader_that_has_seen_the_delete_continues_at_its_cursor():
    """C49: whatever rounds, settings and clocks do afterwards; through JSON as well."""
    topic = MemoryTopic(delete_retention_ms=HOUR)
    append(topic, "a=1 b=1 b=∅")
    reader = topic.reader()
    behind, seen = [], []
    for _ in reader:
        behind.append(reader.cursor())
    seen.append(behind.pop())
    topic.compact()
    topic.compact(now_ms=topic.clock.now_ms() + 2 * HOUR)
    append(topic, "c=1")
    topic.compact()
    for cursor in seen:
        assert drawn(topic.reader(start=Cursor.from_json(cursor.to_json()))) == "c=1@3"
    for cursor in behind:
        with pytest.raises(LogTruncatedError, match="removed deletes below offset 3"):
            topic.reader(start=Cursor.from_json(cursor.to_json()))


def test_cursors_of_all_logs_are_gone_on_from():
    """C49: a log that has come since is read from its start."""
    memory = MemoryTopic(partitions=2)
    topic = Topic(memory.warehouse, ORDERS)
    memory.append([Record(b"k", b"%d" % n, partition=n % 2) for n in range(6)])
    reader = topic.reader()
    first = [reader.read_next() for _ in range(4)]
    topic.alter(partitions=3)
    memory.append([Record(b"k", b"%d" % n, partition=n % 3) for n in range(6, 9)])
    rest = list(topic.reader(start=reader.cursors()))
    assert reader.places() == reader.cursors()
    assert sorted(r.value for r in first + rest) == [b"%d" % n for n in range(9)]
    with pytest.raises(UnknownTopicError, match="no partition 7"):
        topic.reader(start={7: reader.cursors()[0]})
    of_json = {"0": reader.cursors()[0]}
    for partition, start in ((0, reader.cursors()), (None, reader.cursors()[0]), (None, of_json)):
        with pytest.raises(RefusedError, match="cursor"):
            topic.reader(partition, start)


def test_a_cursor_of_a_log_that_is_another_is_reported():
    """C49, C7: recreated, or truncated below. And by the names that cursors had first."""
    topic = MemoryTopic()
    append(topic, "a=1 b=1 c=1")
    reader = topic.reader(start=2)
    cursor = reader.cursor()
    assert reader.place() == cursor
    truncate(topic.warehouse, ORDERS, 0, 1)
    append(topic, "d=1 e=1")
    with pytest.raises(LogTruncatedError, match=r"truncated below offset 2.*\(start at offset 2 to continue anyway"):
        topic.reader(start=cursor)
    topic.make_again()
    append(topic, "a=1 b=1 c=1")
    with pytest.raises(LogTruncatedError, match="recreated"):
        topic.reader(start=cursor)


@pytest.mark.parametrize(("offset", "says", "nearest"), [(1, "starts at 2 now", 2), (9, "ends at 3 now", 3)])
def test_the_error_for_a_lost_cursor_names_an_offset_that_can_be_read(offset, says, nearest):
    """C49: the nearest, where the log does not have that of the cursor."""
    topic = MemoryTopic()
    append(topic, "a=1 b=1 c=1")
    cursor = replace(topic.reader().cursor(), offset=offset)
    delete_records(topic.warehouse, ORDERS, 0, 2)
    with pytest.raises(LogTruncatedError, match=rf"{says}.*\(start at offset {nearest} to continue"):
        topic.reader(start=cursor)
    topic.reader(start=nearest)


def test_values_that_a_truncation_brings_back_behind_a_cursor_are_reported():
    """C49, C26: side by side the backlog has them still, at offsets that the reader of the view has passed."""
    topic = MemoryTopic(**BESIDE)
    append(topic, "k=1 b=1 c=1 k=2")
    topic.compact()
    reader, backlog = topic.reader(compacted=True), topic.reader()
    assert reader.read_next().offset == 1  # what k had before is in no view
    assert [backlog.read_next().offset for _ in range(2)] == [0, 1]
    cursor = reader.cursor()
    truncate(topic.warehouse, ORDERS, 0, 2, below_compacted=True)
    append(topic, "d=1")
    assert drawn(topic.reader(compacted=True)) == "k=1@0 b=1@1 d=1@2"
    with pytest.raises(LogTruncatedError, match="a truncation has restored values, since it was read up to"):
        topic.reader(start=cursor, compacted=True)
    assert drawn(topic.reader(start=backlog.cursor())) == "d=1@2"
    assert drawn(topic.reader(start=topic.reader(compacted=True).cursor(), compacted=True)) == "k=1@0 b=1@1 d=1@2"


def test_a_following_compacted_reader_stays_where_a_round_took_the_front_of_the_view():
    """C7, C37: only deleted records make its cursor invalid."""
    topic = MemoryTopic(**BESIDE)
    append(topic, "a=1 b=1 c=1")
    topic.compact()
    follower = topic.reader(start=0, follow=True, compacted=True)
    append(topic, "a=2 b=2")
    topic.compact()
    assert polled(follower) == "a=1@0 b=1@1 c=1@2 a=2@3 b=2@4"
    behind = topic.reader(start="latest", follow=True, compacted=True)
    append(topic, "d=1 e=1")
    delete_records(topic.warehouse, ORDERS, 0, 6)
    with pytest.raises(LogTruncatedError, match="starts at 6 now"):
        list(behind.poll())


@pytest.mark.parametrize("compacted", [False, True])
def test_a_following_reader_is_cut_off_only_by_a_truncation_below_it(compacted):
    """C7, C26: one that stands at the cut or below it goes on, and gets the offsets that were given anew."""
    topic = MemoryTopic(**BESIDE)
    append(topic, "a=1 b=1")
    topic.compact()
    append(topic, "c=1")
    at_it = topic.reader(start="latest", follow=True, compacted=compacted)
    append(topic, "d=1")
    above = topic.reader(start="latest", follow=True, compacted=compacted)
    truncate(topic.warehouse, ORDERS, 0, 3)
    append(topic, "e=1 f=1")
    with pytest.raises(LogTruncatedError, match="truncated"):
        list(above.poll())
    assert polled(at_it) == "e=1@3 f=1@4"


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_a_reader_does_not_pass_over_values_that_came_back_below_it(mode):
    """C49: a round superseded a=1, which the reader passed; undone, and cut off what superseded it, a=1 is current."""
    topic = MemoryTopic(compaction_mode=mode)
    append(topic, "a=1 b=1 c=1 a=2")
    topic.compact()
    reader = topic.reader(compacted=True)
    assert drawn([reader.read_next()]) == "b=1@1"
    undo(topic.warehouse, ORDERS)
    assert drawn(topic.reader(start=reader.cursor(), compacted=True)) == "c=1@2 a=2@3", "nothing is missed yet"
    truncate(topic.warehouse, ORDERS, 0, 3)
    with pytest.raises(LogTruncatedError, match="a truncation has restored values"):
        topic.reader(start=reader.cursor(), compacted=True)
    assert drawn(topic.records(compacted=True)) == "a=1@0 b=1@1 c=1@2"


def test_a_reader_of_a_view_that_was_cut_and_then_dropped_gets_the_error_still():
    """C49: a=1 is current again, below its cursor; of deletes that the view has lost the backlog has all."""
    topic = MemoryTopic(**BESIDE)
    append(topic, "a=1 b=1 c=1 a=2")
    topic.compact()
    reader = topic.reader(compacted=True)
    assert drawn([reader.read_next()]) == "b=1@1"
    truncate(topic.warehouse, ORDERS, 0, 3, below_compacted=True)
    append(topic, "d=∅ e=1")
    topic.compact()
    topic.compact(2 * DAY)
    uncompact(topic.warehouse, ORDERS)
    with pytest.raises(LogTruncatedError, match="a truncation has restored values"):
        topic.reader(start=reader.cursor(), compacted=True)


def test_a_missing_view_fails_compacted_readers_and_rounds_alone():
    """C8, C33: no silent fall-back to the backlog; the next round recreates it once it is dropped."""
    topic = MemoryTopic(**BESIDE)
    append(topic, "a=1 a=2")
    topic.compact()
    append(topic, "a=3")
    lost = topic.view()[0].path
    del topic.files.data[lost]
    with pytest.raises(DamagedError, match=lost):
        topic.records(compacted=True)
    assert lost in topic.compact().failed[0].error
    assert drawn(topic.records()) == "a=1@0 a=2@1 a=3@2"
    uncompact(topic.warehouse, ORDERS)
    topic.compact()
    assert drawn(topic.records(compacted=True)) == "a=3@2"


def test_a_view_without_a_record_has_nothing_to_wait_for():
    """C36: all keys deleted; the log goes on from there."""
    topic = MemoryTopic(**BESIDE)
    append(topic, "a=1 a=∅")
    topic.compact()
    compacted, plain = topic.reader(follow=True, compacted=True), topic.reader(follow=True)
    assert (compacted.last_message_id(), compacted.has_message_available()) == (None, False)
    assert (plain.last_message_id(), plain.has_message_available()) == (LastRecord(1, 1000), True)
    assert (polled(compacted), polled(plain)) == ("", "a=1@0 a=∅@1")
    append(topic, "b=1")
    assert (compacted.last_message_id(), compacted.has_message_available()) == (LastRecord(2, 1000), True)
    assert polled(compacted) == "b=1@2"
    assert not compacted.has_message_available()


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_a_reader_reads_its_version_through_ten_rounds_and_a_sweep_and_then_no_more(mode):
    """C7: its files stay for versions.retention.ms after a commit stopped naming them; then it gets an error."""
    topic = MemoryTopic(compaction_mode=mode, versions_retention_ms=HOUR, versions_kept=1)
    append(topic, "a=0 b=0 a=0")
    topic.compact()
    in_time, late = (topic.reader(compacted=True) for _ in range(2))
    for value in range(1, 11):
        append(topic, f"a={value} b={value} a={value}")
        topic.compact()
    topic.clock.advance(HOUR - 1)
    assert sweep(topic.warehouse, ORDERS, delete=True).files == ()
    assert drawn(in_time) == "b=0@1 a=0@2"
    topic.clock.advance(1)
    assert sweep(topic.warehouse, ORDERS, delete=True).files
    with pytest.raises(VersionSweptError, match="was swept"):
        list(late)
    assert drawn(topic.records(compacted=True)) == "b=10@31 a=10@32"
