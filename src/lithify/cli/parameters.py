"""Types of values on the command line: times, durations, start offsets, `NAME=VALUE`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from lithify.model.cursor import AtTime, Start
from lithify.model.settings.units import parse_duration_ms, parse_time_ms


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
    """`earliest`, `latest`, an offset or a time (C37)."""

    name = "earliest|latest|OFFSET|TIME"

    def convert(self, value: str | int | AtTime, param: click.Parameter | None, ctx: click.Context | None) -> Start:
        if not isinstance(value, str):
            return value
        if value == "earliest":
            return "earliest"
        if value == "latest":
            return "latest"
        if value.removeprefix("-").isdecimal():
            return int(value)
        try:
            return AtTime(parse_time_ms(value))
        except ValueError as error:
            self.fail(f"{error}; or earliest, latest, an offset", param, ctx)


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


def as_mapping(pairs: Iterable[tuple[str, str]], option: str) -> dict[str, str]:
    """Pairs as a mapping. Raises `click.UsageError` for a name given twice."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise click.UsageError(f"{option} {name} is given twice")
        found[name] = value
    return found
