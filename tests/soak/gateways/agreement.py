"""Whether `lithify status`, gateways, pages, metrics and events tell the same of the topics."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import requests
from prometheus_client.parser import text_string_to_metric_families

from soak.gateways.watching import Rows
from soak.programs import Life
from soak.servers import CATALOG
from support.processes.programs import PROGRAM

ANSWERS_S = 120.0
COMPARED = ("state", "partition", "logs", "logs_in_state", "records", "bytes", "dirty_ratio", "failures")
"""Of each topic: all but what the clock changes."""
DUE, QUARANTINED = ("due", "overdue", "failing"), ("quarantined",)


def rows_of_command_line(env: Mapping[str, str]) -> Rows:
    """What `lithify status` prints."""
    ran = subprocess.run(
        [*PROGRAM, "status", "--catalog", CATALOG, "--json"],
        env=dict(env), capture_output=True, text=True, timeout=ANSWERS_S, check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    return _by_topic({"topics": [line for line in lines if "topic" in line]})  # cleaners come after them


def rows_of_gateway(url: str) -> Rows:
    """What its API answers."""
    return _by_topic(requests.get(f"{url}/api/v1/status", timeout=ANSWERS_S).json())


def differences(who: str, wanted: Rows, found: Rows) -> Iterator[str]:
    """Topics that are told otherwise, in words."""
    for name in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(name), found.get(name)
        if one is None or other is None:
            yield f"{who}: {name} is told by {'it' if one is None else 'lithify status'} alone"
            continue
        differ = {field: (one[field], other[field]) for field in COMPARED if one[field] != other[field]}
        if differ:
            yield f"{who}: {name}: lithify status and it differ: {differ}"


def metrics_of(url: str) -> dict[str, float]:
    """Each sum over all labels, by the name of the sample."""
    text = requests.get(f"{url}/metrics", timeout=ANSWERS_S).text
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] += sample.value  # type: ignore[assignment]
    return dict(found)


def gauge_differences(who: str, status: Rows, metrics: Mapping[str, float]) -> Iterator[str]:
    """What the gauges of a gateway say otherwise than `lithify status`."""
    states = Counter(row["state"] for row in status.values())
    wanted = {
        "lithify_topics": len(status),
        "lithify_unreadable_topics": states["unreadable"],
        "lithify_due_topics": sum(states[state] for state in DUE),
        "lithify_quarantined_logs": sum(states[state] for state in QUARANTINED),
        "lithify_overdue_topics": states["overdue"],
        "lithify_running_topics": 0,
    }
    for name, value in wanted.items():
        if metrics.get(name) != value:
            yield f"{who}: {name} is {metrics.get(name)}, and by lithify status {value}"


def counter_differences(who: str, life: Life, metrics: Mapping[str, float]) -> Iterator[str]:
    """What the counters of a gateway say otherwise than its own events."""
    for name, value in counted_events(life.events()).items():
        if metrics.get(name, 0) != value:
            yield f"{who}: {name} is {metrics.get(name)}, and by its events {value}"


def counted_events(events: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What counters have to be after these events."""
    rounds = [event for event in events if event["event"] == "round"]
    changed = [event for event in rounds if event["changed"]]
    return {
        "lithify_compaction_rounds_total": len(changed),
        "lithify_compaction_idle_rounds_total": len(rounds) - len(changed),
        "lithify_compaction_logs_total": sum(len(event["partitions"]) for event in changed),
        "lithify_compaction_input_records_total": sum(event["records_in"] for event in changed),
        "lithify_compaction_output_records_total": sum(event["records_out"] for event in changed),
        "lithify_compaction_removed_records_total": sum(event["removed"] for event in changed),
        "lithify_compaction_read_bytes_total": sum(event["bytes_read"] for event in rounds),
        "lithify_compaction_written_bytes_total": sum(event["bytes_written"] for event in changed),
        "lithify_compaction_duration_seconds_count": len(rounds),
    }


def _by_topic(overview: Mapping[str, Any]) -> Rows:
    return {row["topic"]: row for row in overview["topics"]}
