"""The options of a gateway, beside the options of its cleaner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lithify.cli.metrics_options import MOST_TOPICS
from lithify.cli.parameters import AddressType
from lithify.errors import RefusedError

if TYPE_CHECKING:
    from lithify.gateway.process.options import GatewayOptions
    from lithify.gateway.standing.options import JobListener

_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--listen",
        type=AddressType(host=None, least_port=0),
        metavar="HOST:PORT",
        default="127.0.0.1:7660",
        show_default=True,
        help="The address of the page and the API.",
    ),
    click.option(
        "--kafka-listen",
        type=AddressType(host=None, least_port=0),
        metavar="HOST:PORT",
        help="Also serve topics to Kafka's clients, which may only read, at this address.",
    ),
    click.option(
        "--kafka-advertise",
        type=AddressType(host=None),
        metavar="HOST:PORT",
        help="Where Kafka's clients connect to, if that is another address.",
    ),
    click.option("--name", metavar="NAME", help="Unique name of this gateway. Default: host name and process id."),
    click.option("--tls-certificate", type=_FILE, metavar="FILE", help="Certificate with its issuers, in PEM."),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="Its key, in PEM, without a password."),
    click.option(
        "--allow-host", "hosts", metavar="NAME", multiple=True, help="Another name of this gateway in URLs. Repeatable."
    ),
    click.option("--require-tokens", is_flag=True, help="Also on this machine, require a token."),
    click.option("--insecure-no-tokens", is_flag=True, help="Let anyone who reaches the address do everything."),
    click.option("--insecure-no-tls", is_flag=True, help="Let others on the network read records and tokens."),
    click.option("--audit-log", "audit", type=_FILE, metavar="FILE", help="Append who changed what, as JSON lines."),
    click.option(
        "--metrics-per-topic",
        type=click.IntRange(0, MOST_TOPICS),
        metavar="N",
        default=0,
        help="Also label metrics by topic, of N topics at most.",
    ),
)


@dataclass(frozen=True, slots=True)
class GatewayAsked:
    """What a gateway is asked to be. `more` are options that `GatewayOptions` has by the same names."""

    listen: tuple[str, int]
    name: str | None
    tls: tuple[Path, Path] | None
    hosts: tuple[str, ...]
    kafka: tuple[tuple[str, int], tuple[str, int] | None] | None
    """Where Kafka's clients are listened for, and what they are told to connect to."""
    more: dict[str, Any]

    def options(self, place: tuple[str, ...], tell_job: JobListener) -> GatewayOptions:
        """The options of the process; `place` is where the lake is. Raises `InvalidInputError`."""
        from lithify.api.wiring import machine
        from lithify.gateway.access.hosts import checked_host
        from lithify.gateway.listening.listen import Address, ListenAddress
        from lithify.gateway.listening.tls import TlsFiles
        from lithify.gateway.process.options import GatewayOptions, KafkaAddresses

        kafka = None
        if self.kafka is not None:
            listen, advertised = self.kafka
            kafka = KafkaAddresses(ListenAddress(*listen), Address(*(advertised or listen)))
        return GatewayOptions(
            self.name or machine(),
            ListenAddress(*self.listen),
            None if self.tls is None else TlsFiles(*self.tls),
            kafka,
            hosts=frozenset(map(checked_host, self.hosts)),
            place=place,
            tell_job=tell_job,
            **self.more,
        )


_MORE = ("require_tokens", "insecure_no_tokens", "insecure_no_tls", "audit", "metrics_per_topic")


def gateway_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them, as one value `gateway`."""

    @wraps(function)
    def with_gateway(
        *before: Any, listen: tuple[str, int], name: str | None, hosts: tuple[str, ...], **given: Any
    ) -> Any:
        certificate, key = given.pop("tls_certificate"), given.pop("tls_key")
        if name is not None and not name.strip():
            raise RefusedError("--name is empty", hint="omit it to use the host name and the process id")
        if (certificate is None) != (key is None):
            raise click.UsageError("--tls-certificate and --tls-key need each other")
        kafka_listen, advertised = given.pop("kafka_listen"), given.pop("kafka_advertise")
        if kafka_listen is None and advertised is not None:
            raise click.UsageError("--kafka-advertise needs --kafka-listen")
        kafka = None if kafka_listen is None else (kafka_listen, advertised)
        more = {option: given.pop(option) for option in _MORE}
        tls = None if certificate is None else (certificate, key)
        return function(*before, gateway=GatewayAsked(listen, name, tls, hosts, kafka, more), **given)

    for option in reversed(_OPTIONS):
        with_gateway = option(with_gateway)
    return with_gateway
