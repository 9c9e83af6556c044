"""A result as a page of words and tables: what its verb prints, in one value.

RoundReport ──► title     orders: a round
                table     a row for each log           as `lithify compact` prints it
                lines     orders: 7 → 4 records, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from lithify.reports.cut import CutReport, SweepReport
from lithify.reports.groups import GroupInfo, GroupLag
from lithify.reports.ingest import IngestReport
from lithify.reports.overview import CatalogOverview
from lithify.reports.pulsar.rounds import TopicRoundPlan, TopicRoundReport
from lithify.reports.quarantine import QuarantineReport
from lithify.reports.replicas import ReplicaVerification
from lithify.reports.replicas.status import ReplicaStatus
from lithify.reports.report import Report
from lithify.reports.round import PlanReport, RoundReport
from lithify.reports.space import Space
from lithify.reports.status import TopicInfo, TopicStatus, VersionReport
from lithify.reports.streams import StreamInfo
from lithify.reports.tables import pulsar_rounds
from lithify.reports.tables.cuts import cut_table, sweep_summary, sweep_table
from lithify.reports.tables.groups import group_table, lag_table
from lithify.reports.tables.ingest import ingest_table
from lithify.reports.tables.overview import cleaner_notes, overview_summary, overview_table
from lithify.reports.tables.quarantine import quarantine_table
from lithify.reports.tables.replicas import replica_table
from lithify.reports.tables.rounds import (
    history_table,
    plan_summary,
    plan_table,
    round_summary,
    round_table,
    unread_groups,
)
from lithify.reports.tables.space import space_line
from lithify.reports.tables.status import status_table, status_title
from lithify.reports.tables.table import Table
from lithify.reports.tables.topics import stream_table, topic_facts, topic_settings, topic_table, version_table
from lithify.reports.tables.verification import finding_text, replica_summary, verdict, verify_summary
from lithify.reports.verification import VerifyReport

Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """What is shown of a result, from the top."""

    title: str
    table: Table[Any] | None = None
    lines: Sequence[str] = ()


def facts_table(facts: Facts) -> Table[tuple[str, str]]:
    """Values by name."""
    return Table(("NAME", "VALUE"), facts, lambda fact: fact, left=("NAME", "VALUE"))


@singledispatch
def page_of(report: Report) -> Page:
    """The page of one report; of a kind whose verb prints no table, its fields."""
    fields = [(name, str(value)) for name, value in report.to_json().items()]
    return Page(type(report).__name__, facts_table(fields))


@page_of.register
def _round(report: RoundReport) -> Page:
    failed = [f"partition {log.partition}: {log.error}" for log in report.failed]
    lines = [*_unread(report.groups_error), round_summary(report), *failed, *_space(report.space)]
    return Page(f"{report.topic}: round", round_table(report), lines)


@page_of.register
def _plan(plan: PlanReport) -> Page:
    return Page(f"{plan.topic}: plan of a round", plan_table(plan), [*_unread(plan.groups_error), plan_summary(plan)])


@page_of.register
def _status(found: TopicStatus) -> Page:
    lines = [*_unread(found.groups_error), *_space(found.space)]
    return Page(f"{found.topic}: {status_title(found)}", status_table(found), lines)


@page_of.register
def _info(found: TopicInfo) -> Page:
    return Page(found.original_name, facts_table([*topic_facts(found), *topic_settings(found)]))


@page_of.register
def _overview(found: CatalogOverview) -> Page:
    lines = [overview_summary(found)] if found.topics else ["no topics yet"]
    return Page("topics, the worst first", overview_table(found), [*lines, *cleaner_notes(found)])


@page_of.register
def _verification(report: VerifyReport) -> Page:
    return Page(f"{report.topic}: verification", None, [verify_summary(report, verdict(report)), *_findings(report)])


@page_of.register
def _replica_verification(report: ReplicaVerification) -> Page:
    lines = [replica_summary(report, verdict(report)), *_findings(report)]
    return Page(f"{report.topic}: verification of a replica", None, lines)


@page_of.register
def _cut(report: CutReport) -> Page:
    lines = _unread(report.groups_error) if report.changed else [*_unread(report.groups_error), "nothing was changed"]
    return Page(f"{report.topic}: {report.verb.value}, version {report.version}", cut_table(report), lines)


@page_of.register
def _sweep(report: SweepReport) -> Page:
    return Page(f"{report.topic}: sweep", sweep_table(report), [sweep_summary(report)])


@page_of.register
def _quarantine(found: QuarantineReport) -> Page:
    unreadable = [f"{topic.topic}: {topic.error}" for topic in found.unreadable]
    lines = unreadable if found.logs or unreadable else ["no round fails"]
    return Page("logs whose rounds fail", quarantine_table(found), lines)


@page_of.register
def _pulsar_round(report: TopicRoundReport) -> Page:
    lines = [pulsar_rounds.round_summary(report), *report.notes]
    return Page(f"{report.topic}: round", pulsar_rounds.round_table(report), lines)


@page_of.register
def _pulsar_plan(plan: TopicRoundPlan) -> Page:
    return Page(f"{plan.topic}: plan of a round", pulsar_rounds.plan_table(plan), plan.notes)


_TABLES: Mapping[type[Report], tuple[str, Callable[[Sequence[Any]], Table[Any]]]] = {
    RoundReport: ("rounds, newest first", history_table),
    VersionReport: ("kept versions, newest first", version_table),
    TopicInfo: ("topics", topic_table),
    StreamInfo: ("streams", stream_table),
    GroupInfo: ("consumer groups", group_table),
    GroupLag: ("what the group has left to read", lag_table),
    ReplicaStatus: ("replicas", replica_table),
    IngestReport: ("copies", ingest_table),
}


def page_of_several(reports: Sequence[Any]) -> Page | None:
    """The page of reports of one kind, as the verb prints them that lists them; None without such a verb."""
    known = _TABLES.get(type(reports[0])) if reports else None
    return None if known is None else Page(known[0], known[1](reports))


def _findings(report: VerifyReport | ReplicaVerification) -> list[str]:
    return [finding_text(report.topic, finding, finding.kind.value) for finding in report.findings]


def _unread(error: str | None) -> list[str]:
    return [] if error is None else [unread_groups(error)]


def _space(space: Space | None) -> list[str]:
    return [line] if (line := space_line(space)) else []
