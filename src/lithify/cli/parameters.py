"""Values on the command line: times, durations, start offsets, `NAME=VALUE`, and options of several verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from lithify.model.cursor import AtTime, Start
from lithify.model.message import MessageId
from lithify.model.settings.units import parse_duration_ms, parse_time_ms

Function = Callable[..., Any]
Option = Callable[[Function], Function]


class TimeType(click.ParamType[int]):
    """ISO 8601 or `@EPOCH_MS`, as epoch milliseconds."""

    name = "TIME"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_time_ms(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class DurationType(click.ParamType[int]):
    """`30s`, `5m`, `250` (milliseconds), as milliseconds above zero."""

    name = "DURATION"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            duration_ms = parse_duration_ms(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if duration_ms <= 0:
            self.fail(f"{value}: a duration above zero", param, ctx)
        return duration_ms


class StartType(click.ParamType[Start]):
    """`earliest`, `latest`, an offset, a message id or a time (C37, C52)."""

    name = "earliest|latest|OFFSET|ID|TIME"

    def convert(
        self, value: str | int | AtTime | MessageId, param: click.Parameter | None, ctx: click.Context | None
    ) -> Start:
        if not isinstance(value, str):
            return value
        if value == "earliest":
            return "earliest"
        if value == "latest":
            return "latest"
        if value.removeprefix("-").isdecimal():
            return int(value)
        with suppress(ValueError):
            return MessageId.parsed(value)
        try:
            return AtTime(parse_time_ms(value))
        except ValueError as error:
            self.fail(f"{error}; or earliest, latest, an offset, LEDGER:ENTRY", param, ctx)


class PairType(click.ParamType[tuple[str, str]]):
    """`NAME=VALUE`."""

    name = "NAME=VALUE"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, rest = value.partition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return name.strip(), rest.strip()


def _as_mapping(_ctx: click.Context, param: click.Parameter, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise click.UsageError(f"{param.opts[0]} {name} is given twice")
        found[name] = value
    return found


def pairs(option: str, shown: str) -> Option:
    """An option that may be repeated, as a mapping of the given names. A name given twice is refused."""
    return click.option(option, type=PairType(), multiple=True, callback=_as_mapping, help=shown)


topic = click.argument("topic_name", metavar="TOPIC")
stream = click.argument("stream_name", metavar="STREAM")
task_memory = click.option(
    "--task-memory",
    default="1GiB",
    show_default=True,
    metavar="SIZE",
    help="Memory of one task; more keys are processed in parts.",
)
spark_conf = pairs("--spark-conf", "A setting of Spark; may be repeated.")


coordination_url = click.option(
    "--coordination-url",
    metavar="URL",
    envvar="LITHIFY_COORDINATION_URL",
    help="A SQL database for leases. Default: the catalog's own, if it is one.",
)
_lease = click.option(
    "--lease", "lease_ms", type=DurationType(), default="30s", show_default=True, help="Until other members take over."
)


@dataclass(frozen=True, slots=True)
class Members:
    """Where the members of a group meet, and the time after which others take over."""

    coordination_url: str | None
    lease_ms: int


def members(function: Function) -> Function:
    """The options `--coordination-url` and `--lease`, as one value `members`."""

    @wraps(function)
    def with_members(*given: Any, coordination_url: str | None, lease_ms: int, **more: Any) -> Any:
        return function(*given, members=Members(coordination_url, lease_ms), **more)

    return coordination_url(_lease(with_members))


def rates(shared_by: str) -> Option:
    """The options `--read-rate` and `--write-rate` (C40)."""

    def decorate(function: Function) -> Function:
        most = f"over all {shared_by}"
        function = click.option("--write-rate", metavar="RATE", help=f"At most this much written per second, {most}.")(
            function
        )
        shown = f"At most this much read per second, {most}: 50MB/s."
        return click.option("--read-rate", metavar="RATE", help=shown)(function)

    return decorate
