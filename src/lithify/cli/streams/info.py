"""`lithify stream info` (C56)."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.drawing import faint, fields, heading
from lithify.cli.terminal.output import show
from lithify.model.settings.inheritance import Origin
from lithify.model.settings.stream_attributes import ATTRIBUTES
from lithify.reports.page.wording import count, in_units
from lithify.reports.streams import StreamInfo


@verb("info")
@parameters.stream
def info(invocation: Invocation, stream_name: str) -> int:
    """Show a stream: what its topics keep, and every attribute with where its value comes from.

    \b
    Examples:
      lithify stream info eu
      lithify stream info eu --json | jq .attributes.compact
    """
    found = invocation.open_lake().stream(stream_name).info()
    if found.error is not None:
        invocation.found = 1
        invocation.say_error(found.error, found.error_code, stream=found.stream)
    if not invocation.printed(found):
        _show(found)
    return invocation.found


def _show(found: StreamInfo) -> None:
    facts = [("topics", count(found.topics)), ("keeps", found.keeps), ("namespace", found.namespace)]
    settings = [name for name in found.attributes if name not in ATTRIBUTES]
    show(
        [
            heading(found.stream),
            *fields(facts),
            faint("  attributes"),
            *fields(_values(found, [name for name in found.attributes if name in ATTRIBUTES]), indent="    "),
            faint("  topic settings"),
            *fields(_values(found, settings), indent="    "),
        ]
    )


def _values(found: StreamInfo, names: list[str]) -> list[tuple[str, str]]:
    return [(name, _value(found, name)) for name in names]


def _value(found: StreamInfo, name: str) -> str:
    value = found.attributes[name]
    return f"{in_units(name, value.value)}{', of the stream' if value.origin is Origin.STREAM else ''}"
