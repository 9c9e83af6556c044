"""What a gateway is started with, beside the options of its cleaner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lithify.gateway.listening.listen import Address, ListenAddress
from lithify.gateway.listening.tls import TlsFiles
from lithify.gateway.standing.options import JobListener


@dataclass(frozen=True, slots=True)
class KafkaAddresses:
    """Where Kafka's clients are listened for, and the address that they are told to connect to, if it is another.

    That is told as it is given, which `localhost` as an address to listen on is not. Its port may be 0: the same.
    """

    listen: ListenAddress
    advertised: Address | None = None


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """By default as the command line has them. `tell_job` gets the events of standing jobs."""

    name: str
    address: ListenAddress
    tls: TlsFiles | None = None
    kafka: KafkaAddresses | None = None
    """Where Kafka's clients are served, if they are."""
    require_tokens: bool = False
    insecure_no_tokens: bool = False
    insecure_no_tls: bool = False
    hosts: frozenset[str] = frozenset()
    """More names under which it is reached."""
    audit: Path | None = None
    metrics_per_topic: int = 0
    """How many topics get a label."""
    place: tuple[str, ...] = ()
    """Where the lake is, as the command line names it to the processes of standing jobs."""
    tell_job: JobListener = lambda _event: None
