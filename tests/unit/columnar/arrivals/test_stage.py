"""What a task writes of a batch: every record, at the log end that was known, in bounded memory (C16, C38)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lithify.columnar.arrivals import stage
from lithify.columnar.arrivals.stage import Stage, renumbered
from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.segment_reader import read_segment
from lithify.errors import InvalidRecordError, OffsetOutOfRangeError
from lithify.model.staged import Destination
from lithify.model.topic.log import LogState
from support.builders import a_topic

ACCESS = FileAccess()
NOW_MS = 1_000


@pytest.fixture
def state(tmp_path):
    """Two logs; the second ends at 40."""
    return a_topic(LogState(0), LogState(1, log_end_offset=40), location=str(tmp_path))


def batch(numbers: range) -> pa.Table:
    """Every third record goes to log 1."""
    return pa.table(
        {
            "key": [b"k%d" % n for n in numbers],
            "value": [b"v%d" % n for n in numbers],
            "partition": pa.array([int(n % 3 == 0) for n in numbers], pa.int32()),
        }
    )


def records(segments):
    return [r for s in segments for table in read_segment(ACCESS, s) for r in to_records(table)]


def staged_of(state, *batches, attempt="0"):
    stages = Stage(ACCESS, Destination.of(state), now_ms=NOW_MS, run_id="run", attempt=attempt)
    for one in batches:
        stages.add(one)
    return stages.close()


def test_no_record_goes_beyond_the_largest_offset(state):
    """C1: nor does the log end behind it go beyond what storage takes."""
    near = replace(state, logs=(LogState(0), LogState(1, log_end_offset=2**63 - 3)))
    stages = Stage(ACCESS, Destination.of(near), now_ms=NOW_MS, run_id="run", attempt="0")
    with pytest.raises(
        OffsetOutOfRangeError, match=r"t-1: the log has no offsets left for 4 records from 9223372036854775805 on"
    ):
        stages.add(batch(range(10)))
        stages.close()


def test_records_go_on_from_the_log_ends_that_were_known(state):
    logs = staged_of(state, batch(range(10)), batch(range(10, 30)))
    assert [(log.partition, log.identity, log.last_timestamp_ms) for log in logs] == [
        (0, "i", NOW_MS),
        (1, "i", NOW_MS),
    ]
    first, second = (records(log.segments) for log in logs)
    assert [(r.offset, r.value) for r in first] == list(enumerate(b"v%d" % n for n in range(30) if n % 3))
    assert [(r.offset, r.value) for r in second] == list(enumerate((b"v%d" % n for n in range(0, 30, 3)), 40))


def test_no_writer_touches_a_file_that_is_there(state):
    """Two with one name are a mistake of ours: the second one fails, and what the first has written stays."""
    [log] = staged_of(state, batch(range(1, 3)))
    second = Stage(ACCESS, Destination.of(state), now_ms=NOW_MS, run_id="run", attempt="0")
    second.add(batch(range(1, 2)))
    with pytest.raises(FileExistsError):
        second.close()
    second.abandon()
    assert len(records(log.segments)) == 2


def test_a_refused_record_refuses_the_task(state):
    stages = Stage(ACCESS, Destination.of(state), now_ms=NOW_MS, run_id="run", attempt="0")
    stages.add(batch(range(3)))
    keyless = {"key": pa.array([None], pa.binary()), "value": [b"v"], "partition": pa.array([0], pa.int32())}
    stages.add(pa.table(keyless))
    with pytest.raises(InvalidRecordError, match="it has no key"):
        stages.close()
    stages.abandon()


def test_a_copied_record_without_a_key_says_how_its_topic_takes_it(state):
    stages = Stage(ACCESS, Destination.of(state), now_ms=NOW_MS, run_id="run", attempt="0", keep_offsets=True)
    keyless = {"key": pa.array([None], pa.binary()), "value": [b"v"], "partition": pa.array([0], pa.int32())}
    stages.add(pa.table(keyless | {"offset": pa.array([7], pa.int64())}))
    with pytest.raises(InvalidRecordError, match=r"-0, offset 7: .*alter\(config=\{'null.key': 'retain'\}\)"):
        stages.close()
    stages.abandon()


def test_what_is_held_is_bounded(state, monkeypatch):
    """Small row groups rather than more memory."""
    monkeypatch.setattr(stage, "GATHERED_RECORDS", 100)
    monkeypatch.setattr(stage, "HELD_BYTES", 20_000)
    logs = staged_of(state, *(batch(range(n, n + 50)) for n in range(0, 3000, 50)))
    groups = [pq.ParquetFile(s.path).metadata.num_row_groups for log in logs for s in log.segments]
    assert len(groups) == 2 and min(groups) > 3
    assert sum(len(records(log.segments)) for log in logs) == 3000


def test_renumbering_keeps_everything_but_the_offsets(state):
    parts = [staged_of(state, batch(range(n, n + 9)), attempt=str(n))[0] for n in (0, 9)]
    segments = [s for part in parts for s in part.segments]
    [written] = renumbered(ACCESS, state, segments, 70, "other")
    before, after = records(segments), records([written])
    assert [r.offset for r in after] == list(range(70, 82))
    assert [(r.key, r.value, r.timestamp, r.headers) for r in after] == [
        (r.key, r.value, r.timestamp, r.headers) for r in before
    ]
