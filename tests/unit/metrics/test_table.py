"""The names of metrics follow the conventions of Prometheus, and Kafka's own their translation."""

from __future__ import annotations

import re

from lithify.metrics.table import METRICS, PREFIX, Group, Kind


def test_each_name_is_there_once_and_has_the_prefix():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(rf"{PREFIX}[a-z]+(_[a-z]+)*", name)] == []


def test_counters_and_only_they_end_with_total():
    assert [m.name for m in METRICS if m.name.endswith("_total") != (m.kind is Kind.COUNTER)] == []


def test_a_unit_is_the_last_word():
    """Names of Kafka keep Kafka's units."""
    ours = [m.name.removesuffix("_total") for m in METRICS if m.group is not Group.KAFKA_NAMES]
    assert [name for name in ours for word in name.split("_")[:-1] if word in ("seconds", "bytes", "ratio")] == []
    assert [name for name in ours if name.rpartition("_")[2] in ("ms", "secs", "percent", "count")] == []


def test_those_of_kafka_are_all_there():
    wanted = {
        "max_dirty_percent",
        "uncleanable_partitions_count",
        "uncleanable_bytes",
        "time_since_last_run_ms",
        "max_compaction_delay_secs",
        "max_clean_time_secs",
        "cleaner_recopy_percent",
    }
    prefix = f"{PREFIX}log_cleaner_"
    assert {m.name.removeprefix(prefix) for m in METRICS if m.group is Group.KAFKA_NAMES} == wanted


def test_only_metrics_of_single_topics_have_that_label():
    assert {m.labels for m in METRICS if m.name.startswith(f"{PREFIX}topic_")} == {("topic",)}
    assert {m.labels for m in METRICS if not m.name.startswith(f"{PREFIX}topic_")} == {
        (),
        ("version",),
        ("error_code",),
        ("cause",),
    }
