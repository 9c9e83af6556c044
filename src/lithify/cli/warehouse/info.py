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

    A warehouse of an earlier Lithify stays one of its format until `lithify warehouse upgrade`.

    \b
    Examples:
      lithify warehouse info
      lithify warehouse info --json | jq .format
    """
    lake = invocation.open_lake()
    lake.warehouse.store.check_is_there()
    found = lake.info()
    if invocation.printed(found):
        return
    facts = [
        ("format", _format(found)),
        ("features", ", ".join(found.features) or "(none)"),
        ("topics", count(found.topics)),
        *((f"of format {version}", count(number)) for version, number in found.topics_by_format.items()),
        *(("unreadable", error) for error in found.unreadable.values()),
    ]
    show([heading(found.warehouse), *fields(facts)])


def _format(found: WarehouseInfo) -> str:
    newer = found.format < found.newest_format
    return (
        f"{found.format}; `lithify warehouse upgrade --yes` makes it {found.newest_format}"
        if newer
        else f"{found.format}"
    )
