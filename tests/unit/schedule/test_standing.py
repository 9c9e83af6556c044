"""How logs and topics stand, and which of them is the worst (C28, C29, C31)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.failure import LogFailure
from lithify.model.segment import Volume
from lithify.model.topic.log import LogState
from lithify.reports.overview import CatalogOverview, Standing, TopicOverview
from lithify.rules.compaction.eligible.horizon import Horizon
from lithify.rules.schedule.assessment import Assessment, Dirtiness, Due
from lithify.rules.schedule.standing import log_standing, topic_overview, worst_first
from support.builders import a_topic, some_settings

DIRTY = LogState(0, log_end_offset=10, dirty=Volume(10, 100))
DUE = Due(True, "dirty ratio 0.60 > 0.5")
OVERDUE = Due(True, "too long", overdue_ms=5)
REST = Due(False, "dirty ratio 0.10 <= 0.5")
FAILED = LogFailure(3, 0, 1, 2, "no room")
STUCK = replace(FAILED, failures=8, quarantined=True)


def half_dirty(verdict):
    return Assessment(Horizon(10, "log end"), Dirtiness(50, 50, 0), None, verdict)


@pytest.mark.parametrize(
    ("verdict", "failure", "expected"),
    [
        (OVERDUE, STUCK, Standing.QUARANTINED),
        (REST, STUCK, Standing.QUARANTINED),
        (OVERDUE, FAILED, Standing.OVERDUE),
        (OVERDUE, None, Standing.OVERDUE),
        (DUE, FAILED, Standing.FAILING),
        (REST, FAILED, Standing.FAILING),
        (DUE, None, Standing.DUE),
        (REST, None, Standing.WAITING),
    ],
)
def test_the_worst_that_is_to_be_said_of_a_log_is_said(verdict, failure, expected):
    assert log_standing(DIRTY, half_dirty(verdict), failure).standing is expected


def test_a_log_without_dirt_waits_if_the_clock_will_make_it_due_else_it_is_clean():
    clean = LogState(0, log_end_offset=10, clean=Volume(10, 100))
    assert log_standing(clean, half_dirty(Due(False, "", 1_000)), None).standing is Standing.WAITING
    assert log_standing(clean, half_dirty(Due(False, "")), None).standing is Standing.CLEAN


def test_it_reports_why_the_log_is_due_and_why_it_fails():
    found = log_standing(DIRTY, half_dirty(DUE), FAILED)
    assert (found.why, found.failures, found.error) == ("dirty ratio 0.60 > 0.5", 3, "no room")
    assert (found.dirty_ratio, found.overdue_ms) == (0.5, 0)
    found = log_standing(DIRTY, half_dirty(REST), None)
    assert (found.failures, found.error) == (0, None)


def a_topic_of(*volumes, **config):
    """Logs with so many records and bytes dirty, each."""
    logs = (LogState(p, clean=Volume(10, 100), dirty=Volume(*v)) for p, v in enumerate(volumes))
    return a_topic(*logs, settings=some_settings(**config))


def test_a_topic_stands_as_its_worst_log_and_has_the_figures_of_all():
    state = a_topic_of((1, 10), (2, 20), (3, 30))
    found = zip(state.logs, (REST, DUE, DUE), (0.9, 0.6, 0.7), strict=True)
    logs = [replace(log_standing(log, half_dirty(due), None), dirty_ratio=ratio) for log, due, ratio in found]
    found = topic_overview(state, logs)
    assert found == TopicOverview(
        topic="t",
        state=Standing.DUE,
        why=DUE.reason,
        partition=2,
        dirty_ratio=0.7,
        logs=3,
        logs_in_state=2,
        records=36,
        bytes=360,
    )


def test_where_nothing_is_compacted_there_is_no_ratio():
    state = a_topic_of((1, 10), cleanup_policy="delete")
    assert topic_overview(state, [log_standing(state.logs[0], half_dirty(REST), None)]).dirty_ratio is None


def stands(topic, state, **figures):
    return TopicOverview(topic, state, **{"dirty_ratio": 0.0, **figures})


IN_ORDER = (
    stands("z", Standing.UNREADABLE, dirty_ratio=None),
    stands("y", Standing.QUARANTINED, overdue_ms=5),
    stands("a", Standing.QUARANTINED),
    stands("x", Standing.OVERDUE, overdue_ms=9, dirty_ratio=0.1),
    stands("b", Standing.OVERDUE, overdue_ms=8, dirty_ratio=0.9),
    stands("w", Standing.FAILING),
    stands("v", Standing.DUE, dirty_ratio=0.9, due_at_ms=7),
    stands("c", Standing.DUE, dirty_ratio=0.8, due_at_ms=5),
    stands("u", Standing.WAITING, due_at_ms=10),
    stands("d", Standing.WAITING, due_at_ms=11),
    stands("t", Standing.WAITING, dirty_ratio=0.2),
    stands("e", Standing.WAITING, dirty_ratio=0.1),
    stands("f", Standing.CLEAN),
    stands("s", Standing.CLEAN),
)


def test_the_worst_come_first_the_most_overdue_the_soonest_the_dirtiest_and_then_by_name():
    """C29."""
    assert worst_first(reversed(IN_ORDER)) == IN_ORDER
    assert worst_first(IN_ORDER[5:] + IN_ORDER[:5]) == IN_ORDER


def test_topics_are_counted_worst_first_without_what_there_is_none_of():
    counts = CatalogOverview(IN_ORDER[2:5] + IN_ORDER[12:], 0).counts()
    assert list(counts.items()) == [(Standing.QUARANTINED, 1), (Standing.OVERDUE, 2), (Standing.CLEAN, 2)]
