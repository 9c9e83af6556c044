"""Writes docs/reference/settings.md from the table of settings; `just docs` calls it.

A test compares the page with what this would write, so that the page cannot fall behind.
"""

from __future__ import annotations

from pathlib import Path

from lithify.model.setting_table import SETTINGS, Setting
from lithify.model.settings import TopicSettings, to_config
from lithify.model.units import format_bytes

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"

_OPENING = """\
# Settings of a topic

<!-- Written by scripts/settings_reference.py from src/lithify/model/settings.py: edit that. -->

A topic gets its settings when it is created: `lithify topic create orders --config
min.compaction.lag.ms=1h`, or `lake.create_topic("orders", config={"min.compaction.lag.ms":
3_600_000})`. Names that Kafka has mean what they mean there. Sizes and durations may carry a unit
(`128MiB`, `7d`); a bare number has the unit of the name. An unknown name or a value that is not
accepted is refused, and the error says what would be.

`lithify topic info TOPIC` shows the settings in force.

| setting | default | accepts | meaning |
| --- | --- | --- | --- |
"""

_CLOSING = """
`retention.ms`, `retention.bytes`, `sweep.grace.ms` and `versions.retention.ms` are stored, checked
and shown, but nothing acts on them in 0.1.0: there are no topics with `cleanup.policy=delete` yet,
and no `sweep`.
"""


_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def page() -> str:
    """The whole page."""
    defaults = to_config(TopicSettings())
    rows = (_row(setting, defaults[setting.name]) for setting in SETTINGS.values())
    return "".join([_OPENING, *rows, _CLOSING])


def _row(setting: Setting, default: str) -> str:
    return f"| `{setting.name}` | `{default}`{_spelled_out(setting, default)} | {setting.accepts} | {setting.doc} |\n"


def _spelled_out(setting: Setting, default: str) -> str:
    """The default in units for people, where that says more than the number."""
    if default in ("-1", "0") or not default.isdigit():
        return ""
    if setting.name.endswith(".ms"):
        factor, unit = next((f, u) for f, u in _UNITS_MS if int(default) % f == 0)
        return f" ({int(default) // factor} {unit})"
    return f" ({format_bytes(int(default))})" if setting.name.endswith(".bytes") else ""


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
