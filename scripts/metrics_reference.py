"""Writes the tables of metrics in docs/operate/monitor.md from the table that the registry is made of.

`just docs` calls it. A test compares the page with what this would write, so that it has every metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lithify.metrics.table import METRICS, Group, Metric

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operate" / "monitor.md"

_WRITTEN = re.compile(
    r"(?<=<!-- Written by `just docs` from src/lithify/metrics/table.py. -->\n\n).*(?=\n<!-- End of)", re.DOTALL
)


def page() -> str:
    """The whole page, with the metrics that there are."""
    return _WRITTEN.sub(lambda _: "\n".join(map(_section, Group)), PAGE.read_text("utf-8"))


def _section(group: Group) -> str:
    return f"**{group.value}**\n\n{''.join(_rows(group))}"


def _rows(group: Group) -> Iterator[str]:
    yield "| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n"
    for metric in METRICS:
        if metric.group is group:
            yield f"| `{metric.name}` | {metric.kind} | {_labels(metric)} | {metric.help} |\n".replace("|  |", "| |")


def _labels(metric: Metric) -> str:
    labels = [f"`{label}`" for label in metric.labels]
    return ", ".join([*labels, "(`topic`)"] if metric.by_topic else labels)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
