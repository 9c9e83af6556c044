"""Reports in notebooks: what verbs print, with every text escaped, and no more rows than can be read."""

from __future__ import annotations

from dataclasses import fields, replace
from html.parser import HTMLParser

import pytest

from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.cli.terminal.drawing import results, texts
from lithify.model.finding import Finding, FindingKind
from lithify.model.groups.reads import NO_READS
from lithify.model.names import TopicName
from lithify.model.replicas.replica_progress import ReplicaStanding
from lithify.model.topic.edit import Verb
from lithify.reports.cut import CutReport, LogCut
from lithify.reports.groups import GroupInfo, GroupLag, GroupReset
from lithify.reports.ingest import IngestReport
from lithify.reports.overview import CatalogOverview, Standing, TopicOverview
from lithify.reports.page import Outlet, Section
from lithify.reports.page.html import ROWS_SHOWN, page_html
from lithify.reports.pulsar.rounds import PartitionPlan, PartitionReport, TopicRoundPlan, TopicRoundReport
from lithify.reports.quarantine import FailingLog, QuarantineReport, UnreadableTopic
from lithify.reports.replicas import ReplicaVerification
from lithify.reports.replicas.status import ReplicaStatus
from lithify.reports.report import Report, Reports
from lithify.reports.rounds.plan import PlanReport
from lithify.reports.rounds.round import LogReport, RoundReport
from lithify.reports.streams import StreamInfo
from lithify.reports.topic_space import SweepReport, SweptFile
from lithify.reports.topics import VersionReport
from lithify.reports.verification import VerifyReport
from lithify.rules.compaction.round_report import plan_report
from lithify.service.look.status import topic_info, topic_status
from lithify.service.round.topic_run import plan_rounds
from support.builders import a_log
from support.topics.memory_topic import ORDERS, MemoryTopic, a_warehouse

EVIL = "<script>alert('&')</script>\u202e"
SEEN = "<script>alert('&')</script>\\u202e"
"""What a person is to see of it."""
OURS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}


class Parsed(HTMLParser):
    """The tags of some HTML, which has to be well-formed, its texts, and the cells of its rows."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"style", "class", "colspan"}
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def status_of(topic):
    return topic_status(topic.warehouse, topic.state)


def evil_reports():
    finding = Finding(0, FindingKind.RECORD_LOST, EVIL)
    failing = FailingLog(EVIL, 0, True, 8, 0, 0, None, EVIL, None)
    yield RoundReport(EVIL, 2, False, (LogReport(0, 0, 0, 0, EVIL, error=EVIL),), 1, 1, groups_error=EVIL)
    yield PlanReport(EVIL, 2, (), 1, groups_error=EVIL)
    yield CatalogOverview((TopicOverview(EVIL, Standing.UNREADABLE, error=EVIL),), 1, cleaners_error=EVIL)
    yield VerifyReport(EVIL, 2, None, (finding,), False, 1, 1, 1, 1)
    yield ReplicaVerification(EVIL, 2, 2, None, (finding,), False, 1, 1, 1, 1)
    yield CutReport(EVIL, Verb.RETAIN, 2, True, (LogCut(0, 0, 1, 0, 1, 2, 2),), 1, groups_error=EVIL)
    yield CutReport(EVIL, Verb.ALTER, 2, True, (LogCut(0, 0, 1, 0, 1, 2, 2),), 1)
    yield SweepReport(EVIL, False, (SweptFile(EVIL, 1, 1, None),), 1, 1, 0, 0, 0)
    yield QuarantineReport((failing,), (UnreadableTopic(EVIL, EVIL, "Damaged"),), 1)
    yield TopicRoundReport(EVIL, (PartitionReport(0, error=EVIL),), 1, "r", (EVIL,))
    yield TopicRoundPlan(EVIL, (PartitionPlan(0, error=EVIL),), (EVIL,))
    yield GroupReset(EVIL, EVIL, ())
    for one in evil_listed():
        yield one
        yield Reports([one])


def evil_listed():
    yield RoundReport(EVIL, 2, False, (), 1, 1)
    yield GroupInfo(EVIL, (EVIL,), 1, EVIL)
    yield GroupLag(EVIL, EVIL, 0, None, 1, None, None, True, EVIL, EVIL)
    yield IngestReport(EVIL, EVIL, 1, 1, 1, error=EVIL)
    yield VersionReport(EVIL, 1, 1, EVIL, Verb.COMPACT, 1, 1, None, None, 1)
    yield GroupReset(EVIL, EVIL, ())
    given = {field.name: None for field in fields(ReplicaStatus)}
    figures = {"name": EVIL, "topic": EVIL, "target": EVIL, "state": ReplicaStanding.FAILED, "error": EVIL}
    yield ReplicaStatus(**{**given, **figures, "copied_bytes": 0, "to_copy_bytes": 0})
    given = {field.name: None for field in fields(StreamInfo)}
    yield StreamInfo(**{**given, "stream": EVIL, "topics": 1, "keeps": EVIL, "attributes": {}})


@pytest.mark.parametrize("report", list(evil_reports()), ids=lambda report: type(report).__name__)
def test_no_text_becomes_html(report):
    html = report._repr_html_()
    found = Parsed(html)
    assert found.tags <= OURS
    assert "<script" not in html.lower()
    shows_it = not (isinstance(report, Reports) and isinstance(report[0], RoundReport | VersionReport))
    assert (SEEN in found.text) is shows_it


def test_names_of_topics_and_warehouses_are_escaped_as_well():
    warehouse = a_warehouse(TopicName("default", EVIL))
    for shown in (
        Lake(warehouse),
        Topic(warehouse, TopicName("default", EVIL)),
        Topic(warehouse, TopicName("x", EVIL)),
    ):
        found = Parsed(shown._repr_html_())
        assert found.tags <= OURS
        assert SEEN in found.text


def test_a_status_has_the_columns_and_notes_of_the_verb():
    topic = MemoryTopic(partitions=2)
    topic.append(a_log("a=1 b=1 a=2").records)
    status = status_of(topic)
    found, table = Parsed(status._repr_html_()), status.page().table
    header, first, *notes = found.rows[:4]
    assert header == list(table.header)
    assert first == list(table.rows[0])
    assert [note for (note,) in notes[:1]] == table.notes(status.logs[0])


def test_a_terminal_and_a_notebook_draw_the_same_page(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    status = status_of(MemoryTopic())
    page = replace(status.page(), sections=[Section("", [("a", "1")]), Section("more", [("b", "2")])])
    assert results(page)[-3:] == ["  a  1", "  more", "    b  2"]
    assert Parsed(page_html(replace(page, table=None))).rows[1:] == [["a", "1"], ["b", "2"]]
    page = VerifyReport("t", 2, 1, (Finding(0, FindingKind.RECORD_LOST, "x", 7),), False, 1, 1, 1, 1).page()
    shown = Parsed(page_html(page)).texts[1:]
    assert [*texts(page, Outlet.NOTICE), *results(page)] == shown
    assert shown[1] == "t-0 offset 7: record_lost: x"


def test_a_topic_of_10_000_partitions_shows_the_first_and_says_how_many_more():
    status = status_of(MemoryTopic(partitions=10_000))
    html = status._repr_html_()
    found = Parsed(html)
    assert [row[0] for row in found.rows[1:] if len(row) > 1] == [str(n) for n in range(ROWS_SHOWN)]
    assert f"and {10_000 - ROWS_SHOWN:,} more" in found.text
    assert len(html) < 100_000
    findings = tuple(Finding(0, FindingKind.RECORD_LOST, "x", offset) for offset in range(1_000))
    assert len(Parsed(VerifyReport("t", 2, 1, findings, False, 1, 1, 1, 1)._repr_html_()).texts) == ROWS_SHOWN + 2


def test_rounds_plans_and_histories_of_a_topic():
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1 a=2").records)
    plans = plan_rounds(topic.warehouse, topic.state, None, 1, NO_READS)
    plan = PlanReport("orders", 2, tuple(plan_report(plan, 1) for plan in plans), 1)
    assert ["PARTITION", "CLEAN BELOW", "RECORDS", "SEGMENTS", "READS", "WRITES", "HORIZON"] in Parsed(
        plan._repr_html_()
    ).rows
    report = topic.compact()
    assert "1 superseded" in Parsed(report._repr_html_()).rows[1]
    several = Parsed(Reports([report, report])._repr_html_())
    assert [len(row) for row in several.rows] == [7, 7, 7]


def test_several_reports_are_a_tuple():
    reports = Reports([GroupReset("g", "t", ())])
    assert reports == (GroupReset("g", "t", ()),)
    assert isinstance(reports, tuple)
    assert Parsed(Reports[Report]()._repr_html_()).texts == ["none"]


def test_a_topic_and_a_lake_say_what_and_where_they_are():
    warehouse = a_warehouse(ORDERS)
    assert repr(Topic(warehouse, ORDERS)) == "<Topic orders in memory>"
    assert repr(Lake(warehouse)) == "<Lake at memory>"
    assert "orders" in Parsed(Lake(warehouse)._repr_html_()).text
    assert ["partitions", "1"] in Parsed(Topic(warehouse, ORDERS)._repr_html_()).rows
    gone = Parsed(Topic(warehouse, TopicName("default", "gone"))._repr_html_())
    assert "<Topic gone in memory>" in gone.text
    assert "no such topic" in gone.text


def test_facts_of_a_topic_are_those_of_the_verb():
    warehouse = a_warehouse(ORDERS)
    info = topic_info(warehouse, warehouse.store.load(ORDERS))
    rows = Parsed(info._repr_html_()).rows
    assert ["policy", "compact, in-place"] in rows
    assert len(rows) > len(info.config)
