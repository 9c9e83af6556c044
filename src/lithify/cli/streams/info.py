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
    stream_info = invocation.open_lake().stream(stream_name).info()
    if stream_info.error is not None:
        invocation.say_error(stream_info.error, stream_info.error_code, stream=stream_info.stream)
    if not invocation.printed(stream_info):
        _show(stream_info)
    return 0 if stream_info.error is None else 1


def _show(stream_info: StreamInfo) -> None:
    facts = [("topics", count(stream_info.topics)), ("keeps", stream_info.keeps), ("namespace", stream_info.namespace)]
    settings = [name for name in stream_info.attributes if name not in ATTRIBUTES]
    show(
        [
            heading(stream_info.stream),
            *fields(facts),
            faint("  attributes"),
            *fields(
                _values(stream_info, [name for name in stream_info.attributes if name in ATTRIBUTES]), indent="    "
            ),
            faint("  topic settings"),
            *fields(_values(stream_info, settings), indent="    "),
        ]
    )


def _values(stream_info: StreamInfo, names: list[str]) -> list[tuple[str, str]]:
    return [(name, _value(stream_info, name)) for name in names]


def _value(stream_info: StreamInfo, name: str) -> str:
    value = stream_info.attributes[name]
    return f"{in_units(name, value.value)}{', of the stream' if value.origin is Origin.STREAM else ''}"
