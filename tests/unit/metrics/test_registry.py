"""What the registry renders of changes and samples."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from lithify.metrics.meter import Change, Sample
from lithify.metrics.registry import OTHERS, Registry
from lithify.metrics.table import METRICS, Group, Kind
from support.scrapes import values_of

ROUNDS, LAG, AGE = "lithify_compaction_rounds_total", "lithify_ingest_lag", "lithify_ingest_lag_age_seconds"


def registry(topics: int = 0) -> Registry:
    return Registry("1.2.3", lambda: 0, topics)


def rendered(of: Registry):
    return {n: v for n, v in values_of(of.render()[0].decode()).items() if not n.startswith("process_")}


def test_a_process_has_its_own_figures_and_the_version():
    shown = values_of(registry().render()[0].decode())
    assert shown["lithify_build_info{version=1.2.3}"] == 1
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"} <= set(shown)


def test_counters_are_there_from_the_begin_and_only_those_of_the_groups():
    meter = registry()
    meter.begin(Group.CLEANER)
    meter.begin(Group.CLEANER, Group.INGEST)  # a second job
    shown = rendered(meter)
    counters = [m for m in METRICS if m.kind is Kind.COUNTER and not m.labels]
    assert [m.name for m in counters if (m.name in shown) != (m.group in (Group.CLEANER, Group.INGEST))] == []
    assert shown[ROUNDS] == shown["lithify_compaction_duration_seconds_count"] == 0


def test_every_registry_counts_by_itself():
    first, second = registry(), registry()
    for meter in (first, second):
        meter.begin(Group.CLEANER)
    first.count([Change(ROUNDS), Change(ROUNDS, 2), Change("lithify_compaction_duration_seconds", 7)])
    assert rendered(first)[ROUNDS] == 3 and rendered(second)[ROUNDS] == 0
    assert rendered(first)["lithify_compaction_duration_seconds_bucket{le=15.0}"] == 1
    assert rendered(first)["lithify_compaction_duration_seconds_bucket{le=5.0}"] == 0


def test_without_a_limit_no_topic_is_named():
    meter = registry()
    meter.begin(Group.CLEANER)
    meter.count([Change(ROUNDS, topic="orders")])
    meter.watch(lambda: [Sample("lithify_topic_dirty_ratio", 0.5, "orders")])
    assert "orders" not in meter.render()[0].decode()
    assert rendered(meter)[ROUNDS] == 1


def test_so_many_topics_are_named_as_were_asked_for():
    meter = registry(2)
    meter.begin(Group.CLEANER)
    names = [f"t{number}" for number in range(100)]
    meter.watch(lambda: [Sample("lithify_topic_dirty_ratio", 0.5, name) for name in names])
    meter.count(Change(ROUNDS, topic=name) for name in names)
    shown = rendered(meter)
    assert {name: value for name, value in shown.items() if name.startswith(ROUNDS)} == {
        f"{ROUNDS}{{topic=t0}}": 1,
        f"{ROUNDS}{{topic=t1}}": 1,
        f"{ROUNDS}{{topic={OTHERS}}}": 98,
    }
    assert [name for name in shown if "dirty_ratio" in name] == [
        "lithify_topic_dirty_ratio{topic=t0}",
        "lithify_topic_dirty_ratio{topic=t1}",
    ]
    assert shown["lithify_unlabelled_topics"] == 98


def test_a_gauge_is_as_its_source_says_at_each_scrape_and_gone_with_it():
    meter, lags = registry(), [7.0]

    def source():
        return [Sample(LAG, lag) for lag in lags]

    meter.watch(source)
    assert rendered(meter)[LAG] == 7
    lags[:] = [3]
    assert rendered(meter)[LAG] == 3
    meter.forget(source)
    assert LAG not in rendered(meter)


def test_of_two_jobs_lags_are_added_and_the_older_age_is_shown():
    meter = registry()
    for lag, age_s in ((7, 2), (5, 60)):
        meter.watch(lambda lag=lag, age_s=age_s: [Sample(LAG, lag), Sample(AGE, age_s)])
    assert (rendered(meter)[LAG], rendered(meter)[AGE]) == (12, 60)


@pytest.mark.parametrize("name", ['a"b\\c\nd', "größe", "{topic}"])
def test_any_name_of_a_topic_is_rendered_so_that_a_scraper_reads_it(name):
    meter = registry(1)
    meter.begin(Group.CLEANER)
    meter.count([Change(ROUNDS, topic=name)])
    assert rendered(meter)[f"{ROUNDS}{{topic={name}}}"] == 1


def test_openmetrics_is_rendered_for_those_who_ask_for_it():
    meter = registry()
    meter.begin(*Group)
    text, content_type = meter.render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert ROUNDS.removesuffix("_total") in [family.name for family in openmetrics(text.decode())]
