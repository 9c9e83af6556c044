"""Addresses to listen on, as options take them."""

from __future__ import annotations

import click

LOOPBACK = "127.0.0.1"


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
