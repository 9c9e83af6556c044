"""What people are told of groups that hold tombstones (C61)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.cli.terminal.drawing import results
from lithify.model.settings.topic_settings import settings_of, to_config
from lithify.reports.changed_settings import creation_notes
from lithify.reports.rounds.plan import PlanReport
from lithify.rules.compaction.round_report import plan_report
from lithify.service.group_reads import read_groups
from lithify.service.look.status import topic_status
from lithify.service.round.topic_run import plan_rounds
from support.builders import a_log
from support.topics.memory_topic import MemoryTopic


@pytest.fixture
def topic():
    topic = MemoryTopic(tombstone_hold_groups="g,h", tombstone_hold_max_ms=3_600_000, delete_retention_ms=0)
    topic.append(a_log("a=1 a=∅ b=1").records)
    topic.compact()
    topic.group_reads("h", 3)
    return topic


def text(lines):
    return " ".join(" ".join(lines).split())


def test_who_holds_them_and_until_when(topic):
    shown = text(results(topic_status(topic.warehouse, topic.state).page()))
    assert (
        "1 tombstone at most is held by group g, which has no committed position here, since 1970-01-01T00:00:01.000Z"
        in shown
    )
    assert "until 1970-01-01T01:00:01.000Z (in 1 h) at the latest" in shown
    assert "group h" not in shown, "it holds nothing"


def test_who_has_missed_some(topic):
    topic.group_reads("g", 1)
    topic.clock.advance(3_600_000)
    shown = text(results(topic.compact().page()))
    assert "1 expired tombstone; tombstones were removed that group g had not read" in shown
    shown = text(results(topic_status(topic.warehouse, topic.state).page()))
    assert "group g, which is at 1, has MISSED deletes below 3" in shown


def test_a_plan_and_a_round_say_for_whom_they_hold(topic):
    state, now_ms = topic.state, topic.clock.now_ms()
    plans = plan_rounds(topic.warehouse, state, None, now_ms, read_groups(topic.warehouse, state))
    plan = PlanReport("orders", 2, tuple(plan_report(plan, 1) for plan in plans), now_ms)
    assert "log end, tombstones held for group g, nothing to do" in text(results(plan.page()))
    report = topic.compact()
    assert "nothing to do; tombstones held for group g" in text(results(report.page()))
    for lines in (
        results(replace(plan, groups_error="no way").page()),
        results(replace(report, groups_error="no way").page()),
    ):
        assert lines[-1].endswith("count as having read nothing, as their committed positions cannot be read: no way")


@pytest.mark.parametrize(("most", "said"), [("-1", "for ever"), ("7d", "for at most 7 d")])
def test_what_naming_groups_means(most, said):
    config = to_config(settings_of({"tombstone.hold.groups": "g,h", "tombstone.hold.max.ms": most}))
    (note,) = creation_notes(config)
    assert note.startswith(f"tombstones remain, {said}, until each of g,h has read them")
    assert list(creation_notes(to_config(settings_of({})))) == []
