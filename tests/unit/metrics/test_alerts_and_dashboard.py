"""The alert rules and the dashboard in `deploy` use metrics that there are, and the alerts fire when they should.

Prometheus and Grafana themselves are not run. What is checked is that the files are of their formats, that each name
of a metric and of a label exists, and for each alert that it fires in the state it is for and in no other.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lithify.metrics.cleaner_metrics import CleanerMetrics
from lithify.metrics.copy_metrics import IngestMetrics, hydrate_metrics, publish_metrics
from lithify.metrics.figures import CleanerFigures, ReplicaFigures, TopicFigures
from lithify.metrics.registry import Registry
from lithify.metrics.replica_metrics import ReplicaMetrics
from lithify.metrics.table import BY_NAME, METRICS, Kind
from lithify.reports.events import CleanerEvent, EventKind
from lithify.reports.ingest import IngestedLog, IngestNote
from lithify.service.snapshot.consumer_narration import FollowedLog, KafkaNote
from support.promql import fires, labels_in, metrics_in, unknown_metrics
from support.scrapes import Values, values_of

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
OF_PROMETHEUS = {"job", "instance", "le"}
"""Labels that come with every scrape, and of histograms."""
OF_PROCESSES = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


def rules() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    return loaded


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    return [rule["expr"] for rule in rules()] + [target["expr"] for panel in panels() for target in panel["targets"]]


# What there is


@pytest.mark.parametrize("expression", expressions())
def test_each_metric_and_label_of_an_expression_exists(expression):
    assert metrics_in(expression)
    assert unknown_metrics(expression, BY_NAME.keys() | OF_PROCESSES) == set()
    known = {label for name in metrics_in(expression) if name in BY_NAME for label in BY_NAME[name].labels}
    assert labels_in(expression) - known - OF_PROMETHEUS == set()


@pytest.mark.parametrize(
    "wrong", ["lithify_no_such_metric > 0", "sum(rate(lithify_compaction_rounds[5m]))", "lithify_topics_total > 1"]
)
def test_a_metric_that_is_not_there_would_be_found(wrong):
    assert unknown_metrics(wrong, BY_NAME.keys()) != set()


@pytest.mark.parametrize("wrong", ["sum(lithify_topics", "lithify_topics{", "no_function(lithify_topics)"])
def test_an_expression_that_cannot_be_read_would_be_found(wrong):
    with pytest.raises(ValueError, match=wrong.split("(", maxsplit=1)[0].split("{")[0]):
        metrics_in(wrong)


def test_counters_are_only_used_by_their_growth():
    """Their own value says nothing, as it begins anew with each process."""
    bare = [e for e in expressions() for name in metrics_in(e) if _is_counter(name) if not _grows(name, e)]
    assert bare == []


def _is_counter(name: str) -> bool:
    return name in BY_NAME and BY_NAME[name].kind is Kind.COUNTER


def _grows(name: str, expression: str) -> bool:
    return re.search(rf"(rate|increase)\({name}(\{{[^}}]*\}})?\[", expression) is not None


def test_rules_have_the_keys_of_prometheus_and_names_of_their_own():
    keys = {"alert", "expr", "for", "labels", "annotations"}
    assert [rule for rule in rules() if not {"alert", "expr", "labels", "annotations"} <= set(rule) <= keys] == []
    assert all(rule["labels"]["severity"] in ("warning", "critical") for rule in rules())
    assert all(set(rule["annotations"]) == {"summary", "description"} for rule in rules())
    assert all(re.fullmatch(r"\d+m", rule.get("for", "0m")) for rule in rules())
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) and all(re.fullmatch("Lithify[A-Za-z]+", name) for name in names)


def test_variables_in_texts_of_rules_are_of_prometheus():
    texts = [text for rule in rules() for text in rule["annotations"].values()]
    found = {variable for text in texts for variable in re.findall(r"\{\{ *(.*?) *\}\}", text)}
    assert found <= {"$labels.instance", "$value", "$value | humanizeDuration"}


def test_panels_overlap_nowhere_and_have_ids_of_their_own():
    all_panels = dashboard()["panels"]
    assert len({panel["id"] for panel in all_panels}) == len(all_panels)
    taken: dict[tuple[int, int], str] = {}
    for panel in all_panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]


def test_panels_ask_the_chosen_source_for_the_chosen_jobs():
    assert {"datasource", "job"} == {variable["name"] for variable in dashboard()["templating"]["list"]}
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}" and panel["title"]
        for target in panel["targets"]:
            names = metrics_in(target["expr"])
            assert target["expr"].count('{job=~"$job"}') == len(names) == 1, target["expr"]
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            grouped = re.search(r"\b(sum|max)\b", target["expr"]) is not None
            assert labels <= (labels_in(target["expr"]) if grouped else {"instance"}), target["expr"]


def test_the_dashboard_has_each_group_of_metrics():
    shown = {BY_NAME[name].group for e in expressions() for name in metrics_in(e) if name in BY_NAME}
    assert {metric.group.name for metric in METRICS} - {group.name for group in shown} == {"KAFKA_NAMES"}


# Whether alerts fire

DAY_MS = 86_400_000
HEALTHY = TopicFigures(dirty_bytes=10, dirty_ratio=0.2, dirty_since_ms=1)


class Process:
    """Everything at once, as a gateway has it, all of it well. The test makes one thing wrong."""

    def __init__(self) -> None:
        self.now_ms = DAY_MS
        self.registry = Registry("0", lambda: self.now_ms)
        self.topic = HEALTHY
        self.looked_ms = self.now_ms
        self.replicas = ReplicaFigures(self.now_ms, 3, 0, {})
        self.cleaner = CleanerMetrics(self.registry, 15_000)
        self.cleaner.watch(lambda: CleanerFigures(self.looked_ms, {"orders": self.topic}, 0, 2, 1))
        daemon = ReplicaMetrics(self.registry)
        daemon.watch(lambda: self.replicas)
        self.ingest = IngestMetrics(self.registry)
        self.publish, self.hydrate = publish_metrics(self.registry, "orders"), hydrate_metrics(self.registry, "orders")
        self.lags(0)

    def lags(self, lag: int, *verbs: str) -> None:
        if "ingest" in verbs or not verbs:
            self.ingest.note(IngestNote("waiting", "", "orders", "orders", (IngestedLog(0, 0, lag, 0),)))
        for verb, metrics in (("publish", self.publish), ("hydrate", self.hydrate)):
            if verb in verbs or not verbs:
                metrics.note(KafkaNote("waiting", "", "orders", "to", (FollowedLog(0, 0, lag),)))

    def waits(self, ms: int) -> None:
        """Everything goes on meanwhile."""
        self.now_ms += ms
        self.looked_ms = self.now_ms
        self.replicas = ReplicaFigures(self.now_ms, 3, self.replicas.failed, self.replicas.behind_since_ms)

    def shown(self) -> Values:
        return values_of(self.registry.render()[0].decode())

    def alerts(self, before: Values) -> set[str]:
        now = self.shown()
        return {rule["alert"] for rule in rules() if fires(rule["expr"], now, before)}


def failing(process: Process) -> None:
    facts = {"partition": 0, "error": "e", "error_code": "Damaged", "failures": 1, "retry_ms": 1}
    for _ in range(4):
        process.cleaner.event(CleanerEvent(EventKind.FAILED, process.now_ms, "c", "orders", facts))


def stalled(process: Process, verb: str) -> None:
    process.lags(5, verb)
    process.waits(1_000_000)


WRONG = {
    "LithifyCleanerStalled": lambda p: (p.waits(200_000), setattr(p, "looked_ms", DAY_MS)),
    "LithifyTopicsOverdue": lambda p: setattr(p, "topic", TopicFigures(overdue_since_ms=p.now_ms - 700_000)),
    "LithifyLogsQuarantined": lambda p: setattr(p, "topic", TopicFigures(quarantined_logs=1)),
    "LithifyTopicsUnreadable": lambda p: setattr(p, "topic", TopicFigures(is_readable=False)),
    "LithifyRoundsFail": failing,
    "LithifyIngestBehind": lambda p: p.lags(200_000, "ingest"),
    "LithifyIngestStalled": lambda p: stalled(p, "ingest"),
    "LithifyIngestOutage": lambda p: p.ingest.note(IngestNote("outage", "")),
    "LithifyIngestTopicFailed": lambda p: p.ingest.note(IngestNote("failed", "", "a", "a", error_code="Broker")),
    "LithifyPublishBehind": lambda p: p.lags(200_000, "publish"),
    "LithifyPublishStalled": lambda p: stalled(p, "publish"),
    "LithifyPublishOutage": lambda p: p.publish.note(KafkaNote("outage", "")),
    "LithifyHydrateBehind": lambda p: p.lags(200_000, "hydrate"),
    "LithifyHydrateStalled": lambda p: stalled(p, "hydrate"),
    "LithifyHydrateOutage": lambda p: p.hydrate.note(KafkaNote("outage", "")),
    "LithifyReplicaBehind": lambda p: setattr(p, "replicas", ReplicaFigures(DAY_MS, 3, 0, {"a": DAY_MS - 400_000})),
    "LithifyReplicaFailed": lambda p: setattr(p, "replicas", ReplicaFigures(DAY_MS, 3, 1, {})),
    "LithifyReplicaStalled": lambda p: (p.waits(400_000), setattr(p, "replicas", ReplicaFigures(DAY_MS, 3, 0, {}))),
}


def test_each_alert_has_a_state_that_it_is_for():
    assert set(WRONG) == {rule["alert"] for rule in rules()}


def test_none_fires_while_all_is_well_even_if_there_is_nothing_new_for_hours():
    process = Process()
    before = process.shown()
    assert process.alerts(before) == set()
    process.waits(6 * 3_600_000)
    assert process.alerts(before) == set()


@pytest.mark.parametrize("alert", sorted(WRONG))
def test_an_alert_fires_in_its_state_and_no_other_does(alert):
    process = Process()
    before = process.shown()
    WRONG[alert](process)
    assert process.alerts(before) == {alert}


def test_outages_that_are_over_fire_nothing():
    process = Process()
    for metrics in (process.publish, process.hydrate):
        metrics.note(KafkaNote("outage", ""))
        metrics.note(KafkaNote("recovered", ""))
    assert process.alerts(process.shown()) == set()


def test_a_process_without_a_group_fires_nothing_of_it():
    shown = values_of(Registry("0", lambda: 0).render()[0].decode())
    assert [rule["alert"] for rule in rules() if fires(rule["expr"], shown, shown)] == []
