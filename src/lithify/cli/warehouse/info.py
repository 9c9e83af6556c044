"""`lithify warehouse info` (C66)."""

from __future__ import annotations

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.drawing import fields, heading
from lithify.cli.terminal.output import show
from lithify.reports.page.wording import count
from lithify.reports.warehouse import WarehouseInfo


@verb("info")
def info(invocation: Invocation) -> None:
    """Show what the warehouse can hold: its format, its features, and the formats of its topics.

    A warehouse of an earlier Lithify keeps its format until `lithify warehouse upgrade`.

    \b
    Examples:
      lithify warehouse info
      lithify warehouse info --json | jq .format
    """
    lake = invocation.open_lake()
    lake.check_is_there()
    warehouse_info = lake.info()
    if invocation.printed(warehouse_info):
        return
    facts = [
        ("format", _format(warehouse_info)),
        ("features", _features(warehouse_info)),
        ("topics", count(warehouse_info.topics)),
        *((f"of format {version}", count(number)) for version, number in warehouse_info.topics_by_format.items()),
        *(("unreadable", error) for error in warehouse_info.unreadable.values()),
    ]
    show([heading(warehouse_info.warehouse), *fields(facts)])


def _features(warehouse_info: WarehouseInfo) -> str:
    features = ", ".join(warehouse_info.features) or "(none)"
    added = ", ".join(warehouse_info.lacks)
    return f"{features}; `lithify warehouse upgrade` adds {added}" if added else features


def _format(warehouse_info: WarehouseInfo) -> str:
    newer = warehouse_info.format < warehouse_info.newest_format
    return (
        f"{warehouse_info.format}; an upgrade makes it {warehouse_info.newest_format}"
        if newer
        else f"{warehouse_info.format}"
    )
