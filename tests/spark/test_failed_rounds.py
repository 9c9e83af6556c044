"""What `topic.compact` does from Python where logs fail: nothing passes for done that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

import lithify
from lithify.columnar.files.access import local_path
from lithify.errors import RoundsFailedError


@pytest.fixture
def topic(tmp_path):
    topic = lithify.open(str(tmp_path / "lake")).create_topic("orders", 2)
    topic.append([lithify.Record(b"k", b"%d" % n, partition=n % 2) for n in range(4)])
    return topic


def lose(topic, partition):
    (segment,) = topic.warehouse.store.segments(topic.state(), [partition])
    Path(local_path(segment.path)).unlink()
    return Path(segment.path).name


def test_a_log_that_fails_is_in_the_report_and_the_others_go_on(topic, session):
    lost = lose(topic, 1)
    report = topic.compact(spark=session)
    assert [lost in (log.error or "") for log in report.logs] == [False, True]
    assert report.changed and report.failed == report.logs[1:]


def test_where_every_log_fails_nothing_looks_done(topic, session):
    """As with `verify`; what is to be known of each log is on the error."""
    lost = [lose(topic, partition) for partition in (0, 1)]
    before = topic.state()
    with pytest.raises(RoundsFailedError, match=f"{lost[0]}.*; all 2 logs failed") as failed:
        topic.compact(spark=session)
    report = failed.value.report
    assert [lost[n] in log.error for n, log in enumerate(report.logs)] == [True, True]
    assert topic.state() == before
    with pytest.raises(RoundsFailedError, match=lost[1]) as failed:
        topic.compact(spark=session, partitions=[1])
    assert [log.partition for log in failed.value.report.logs] == [1]
