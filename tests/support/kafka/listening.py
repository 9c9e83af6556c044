"""The listener for Kafka's clients as a gateway opens it: with the lake's tokens, TLS and an audit file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lithify.api.lake import Lake
from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.gateway.access.audit import AuditFile
from lithify.gateway.listening.bound import bind
from lithify.gateway.listening.guarded import Callers, gateway_tokens, strangers_at
from lithify.gateway.listening.listen import Address, ListenAddress, Protection
from lithify.gateway.listening.tls import TlsFiles
from lithify.gateway.process.kafka_listener import KafkaListener, open_kafka
from lithify.gateway.process.options import GatewayOptions, KafkaAddresses
from lithify.reports.events import CleanerEvent

HERE = ListenAddress("127.0.0.1", 0)


@contextmanager
def listening(
    lake: Lake,
    told: list[CleanerEvent],
    tls: TlsFiles | None = None,
    *,
    needs_token: bool = False,
    audit: Path | None = None,
    host: str = "127.0.0.1",
    advertised: Address | None = None,
) -> Iterator[KafkaListener]:
    """A listener of this machine, as a gateway opens it."""
    bound, tokens = bind(ListenAddress(host, 0)), gateway_tokens(lake.warehouse, None)
    options = GatewayOptions("g1", HERE, tls, KafkaAddresses(HERE, advertised))
    given = Protection(tokens.usable, tls is not None, needs_token)
    reporter = EventReporter(lake.warehouse.clock, "g1", told.append)
    strangers = strangers_at(lake.warehouse.clock, None if audit is None else AuditFile(audit))
    listener = open_kafka(lake, options, bound, given, Callers(tokens, strangers), reporter, url=None)
    listener.start()
    try:
        yield listener
    finally:
        listener.close()
