"""Values on the command line: times, durations, start offsets, addresses, `NAME=VALUE`, options of several verbs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click
from click.shell_completion import CompletionItem

from lithify.cli.completing import names
from lithify.cli.terminal.output import say
from lithify.model.cursor import AtTime, Start
from lithify.model.message import MessageId
from lithify.model.settings.units import (
    format_bytes,
    format_duration,
    parse_duration_ms,
    parse_rate_bytes,
    parse_time_ms,
)
from lithify.ports.leases import LEAST_LEASE_MS

LOOPBACK = "127.0.0.1"
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


MOST_DIGITS = 20
"""Of a number of 64 bits, with its sign."""
LONGEST_MS = 36_500 * 86_400_000
"""A hundred years: no clock, timer or database takes durations of any length."""


class DurationType(click.ParamType[int]):
    """`30s`, `5m`, `250` (milliseconds), as milliseconds above zero, or at least `least_ms`."""

    name = "DURATION"

    def __init__(self, least_ms: int = 1) -> None:
        self._least_ms = least_ms

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            duration_ms = parse_duration_ms(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if duration_ms <= 0:
            self.fail(f"{value}: the duration must be above zero", param, ctx)
        if duration_ms < self._least_ms:
            self.fail(f"{value}: the duration must be at least {format_duration(self._least_ms)}", param, ctx)
        if duration_ms > LONGEST_MS:
            self.fail(f"{value}: the duration must be at most a hundred years", param, ctx)
        return duration_ms


class RateType(click.ParamType[int]):
    """`20MB/s`, or a bare number of bytes per second; with `says` it says how it understands that."""

    name = "RATE"

    def __init__(self, *, says: bool) -> None:
        self._says = says

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            rate = parse_rate_bytes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._says and value.strip().isdecimal() and param is not None:
            say(f"{param.opts[0]} {value} is {format_bytes(rate)}/s")
        return rate


class StartType(click.ParamType[Start]):
    """`earliest`, `latest`, an offset, a message id or a time (C37, C52)."""

    name = "earliest|latest|OFFSET|ID|TIME"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in ("earliest", "latest") if word.startswith(incomplete)]

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
            return _offset(self, value, param, ctx)
        with suppress(ValueError):
            return MessageId.parsed(value)
        if meant := MessageId.printed_by_clients(value):
            why = f"{value!r} has the partition as its third number, as Pulsar's clients print ids"
            self.fail(f"{why}: write {meant}, and the partition as TOPIC-partition-N or --partition N", param, ctx)
        try:
            return AtTime(parse_time_ms(value))
        except ValueError as error:
            self.fail(f"{error}; or earliest, latest, an offset, LEDGER:ENTRY", param, ctx)


class PointType(click.ParamType[int | AtTime]):
    """An offset or a time (C69)."""

    name = "OFFSET|TIME"

    def convert(
        self, value: str | int | AtTime, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | AtTime:
        if not isinstance(value, str):
            return value
        try:
            return _offset(self, value, param, ctx) if value.isdecimal() else AtTime(parse_time_ms(value))
        except ValueError as error:
            self.fail(f"{error}; or an offset", param, ctx)


def _offset(kind: click.ParamType[Any], value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
    """The number that a text of digits is; Python refuses to read texts of thousands of digits."""
    if len(value) > MOST_DIGITS:
        kind.fail(f"a number of {len(value)} digits is not an offset: offsets have at most 64 bits", param, ctx)
    return int(value)


class AddressType(click.ParamType[tuple[str, int]]):
    """`9464`, which is of this machine alone, `0.0.0.0:9464` or `[::1]:9464`; without a default host only the latter.

    Port 0 is any that is free.
    """

    def __init__(self, *, host: str | None = LOOPBACK, least_port: int = 1) -> None:
        self.name = "HOST:PORT" if host is None else "PORT|HOST:PORT"
        self.host, self.least_port = host, least_port

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if not isinstance(value, str):
            return value
        host, colon, port = value.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") if colon else self.host or ""
        if not host:
            given = value if colon else f":{value}"
            self.fail(f"{value}: name a host, such as 0.0.0.0{given} for all addresses of this machine", param, ctx)
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and self.least_port <= int(port) < 2**16):
            self.fail(f"{value}: the port must be a number from {self.least_port} to 65535", param, ctx)
        return host, int(port)


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


def _as_mapping(_ctx: click.Context | None, param: click.Parameter, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for name, value in pairs:
        if name in mapping:
            raise click.UsageError(f"{param.opts[0]} {name} is given twice")
        mapping[name] = value
    return mapping


def pairs(option: str, shown: str) -> Option:
    """An option that may be repeated, as a mapping of the given names. A name given twice is refused."""
    known = names.assigned_settings if option == "--config" else None
    return click.option(option, type=PairType(), multiple=True, callback=_as_mapping, help=shown, shell_complete=known)


class AddedConfigType(click.ParamType[dict[str, str]]):
    """`NAME=VALUE,NAME=[VALUE,VALUE]`, as `kafka-configs --add-config` takes it."""

    name = "NAME=VALUE,..."

    def convert(
        self, value: str | dict[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        if not isinstance(value, str):
            return value
        if not ADDED.fullmatch(value):
            self.fail(f"{value!r} is not NAME=VALUE,NAME=[VALUE,VALUE]", param, ctx)
        pairs = [pair.strip().partition("=") for pair in BETWEEN_PAIRS.split(value)]
        named = [(name.strip(), text.strip().removeprefix("[").removesuffix("]")) for name, _, text in pairs]
        return _as_mapping(ctx, param, named) if param else dict(named)


_PAIR = r"[^=,\[\]]+=(?:\[[^\[\]]*\]|[^,\[\]]*)"
ADDED = re.compile(f"{_PAIR}(?:,{_PAIR})*")
BETWEEN_PAIRS = re.compile(r",(?![^\[]*\])")


topic = click.argument("topic_name", metavar="TOPIC", shell_complete=names.topics)
any_topic = click.argument("topic_name", metavar="[TOPIC]", required=False, shell_complete=names.topics)
new_topic = click.argument("topic_name", metavar="TOPIC")
"""One that is not in the warehouse."""
stream = click.argument("stream_name", metavar="STREAM", shell_complete=names.streams)
new_stream = click.argument("stream_name", metavar="STREAM")
if_not_exists = click.option("--if-not-exists", is_flag=True, help="If it exists already, change nothing and succeed.")
if_exists = click.option("--if-exists", is_flag=True, help="If there is none, change nothing and succeed.")
task_memory = click.option(
    "--task-memory",
    default="1GiB",
    show_default=True,
    metavar="SIZE",
    help="Memory of one task for keys; more are processed in parts. Its process takes 200 MiB besides.",
)
spark_conf = pairs("--spark-conf", "A Spark setting. Repeatable.")


coordination_url = click.option(
    "--coordination-url",
    metavar="URL",
    envvar="LITHIFY_COORDINATION_URL",
    help="SQL database for leases. Default: the catalog's own database, if it has one.",
)
_lease = click.option(
    "--lease",
    "lease_ms",
    type=DurationType(LEAST_LEASE_MS),
    default="30s",
    show_default=True,
    help="How long a member may be silent before others take over its partitions.",
)


@dataclass(frozen=True, slots=True)
class Members:
    """The database that the members of a group share, and the time after which others take over."""

    coordination_url: str | None
    lease_ms: int


def members(function: Function) -> Function:
    """The options `--coordination-url` and `--lease`, as one value `members`."""

    @wraps(function)
    def with_members(*given: Any, coordination_url: str | None, lease_ms: int, **more: Any) -> Any:
        return function(*given, members=Members(coordination_url, lease_ms), **more)

    return coordination_url(_lease(with_members))


def rates(shared_by: str, *, says: bool = True) -> Option:
    """The options `--read-rate` and `--write-rate` (C40). `says`: see `RateType`."""
    kind = RateType(says=says)

    def decorate(function: Function) -> Function:
        most = f"over all {shared_by}"
        function = click.option("--write-rate", type=kind, help=f"At most this much written per second, {most}.")(
            function
        )
        return read_rate(shared_by, says=says)(function)

    return decorate


def read_rate(shared_by: str, *, says: bool = True) -> Option:
    """The option `--read-rate` (C40)."""
    shown = f"At most this much read per second, over all {shared_by}: 50MB/s."
    return click.option("--read-rate", type=RateType(says=says), help=shown)
