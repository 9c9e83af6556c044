"""What serves Kafka's clients in the process of a gateway: a listener on a thread, and what it has open."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from lithify.api.lake import Lake
from lithify.api.wiring import groups_of
from lithify.api.wiring.scopes import scope_of
from lithify.api.wiring.shared_place import kafka_gateways_of
from lithify.daemons.outages import OutageReporter
from lithify.errors import AccessDeniedError, RefusedError
from lithify.gateway.listening.bound import BoundSocket
from lithify.gateway.listening.connections import ServingLoop, make_room
from lithify.gateway.listening.guarded import Callers
from lithify.gateway.listening.kafka_logins import kafka_logins
from lithify.gateway.listening.listen import Address, ListenAddress, Protection, may_listen
from lithify.gateway.listening.tls import server_context
from lithify.gateway.process.options import GatewayOptions
from lithify.kafka_server.connections.answering import Reason
from lithify.kafka_server.connections.connection import Connections
from lithify.kafka_server.connections.serving import KafkaServing
from lithify.kafka_server.groups.coordinator import Coordinator
from lithify.kafka_server.groups.ranking import Gateway
from lithify.kafka_server.groups.seat import Shared
from lithify.kafka_server.logs.allocator import use_small_pages
from lithify.kafka_server.logs.served_topics import ServedTopics
from lithify.kafka_server.requests.cluster import Alone, ThisNode
from lithify.kafka_server.requests.context import Served
from lithify.kafka_server.requests.dispatch import Dispatch
from lithify.service.look.assessed_topic import SharedTopics

THREADS, LARGE_THREADS = 16, 2
"""In which files are waited for, and in which that is done for large requests."""
CLOSED = "a connection of a Kafka client"
"""What events tell of at most once in ten minutes for each kind of reason."""
FULL = "groups of Kafka's clients"
"""The same of members that were refused for want of room."""
EVERYWHERE = ("0.0.0.0", "::")
"""Addresses to listen at, but none to connect to."""


class KafkaLoop(ServingLoop):
    """The HTTP API may have half of the files of the process, Kafka's clients a quarter: one is for its work."""

    share = 4


@dataclass(frozen=True, slots=True)
class KafkaListener:
    """Serves from `start` to `close`."""

    serving: KafkaServing
    topics: ServedTopics
    executors: tuple[ThreadPoolExecutor, ...]
    address: str
    """What clients are told to connect to."""
    listens: str
    """On which address, and where clients connect to if that is another one."""
    warnings: tuple[str, ...]

    def start(self) -> None:
        self.serving.start()

    def close(self) -> None:
        self.serving.close()
        self.topics.close()
        for executor in self.executors:
            executor.shutdown(wait=False, cancel_futures=True)


def open_kafka(  # noqa: PLR0913 - what a gateway is started with
    lake: Lake,
    options: GatewayOptions,
    bound: BoundSocket,
    given: Protection,
    who: Callers,
    reporter: OutageReporter,
    *,
    url: str | None,
    shared: SharedTopics | None = None,
) -> KafkaListener:
    """A listener that is not started yet. `url` names the database of groups, if it is not the catalog.

    `shared` is what others in this process read of topics too.

    Raises `RefusedError` where it may not listen, or clients could not be told an address; or `CoordinationError`.
    """
    listening = may_listen(bound.address, given, allows="read everything")
    address = _advertised(options, bound.address)

    def closed(client: str, reason: Reason) -> None:
        error = AccessDeniedError(reason) if isinstance(reason, str) else copy(reason)
        error.message = f"the connection of a Kafka client at {client} was closed: {error.message}"
        reporter.outage(f"{CLOSED}: {_kind(str(reason))}", error)

    use_small_pages()
    topics = ServedTopics(lake.warehouse, shared)
    groups = _coordinator(lake, url, address, topics, reporter)
    cluster = _alone(lake, address) if groups is None else groups
    executors = ThreadPoolExecutor(THREADS, "kafka-reads"), ThreadPoolExecutor(LARGE_THREADS, "kafka-large")

    def begin() -> Connections:
        logins = kafka_logins(listening, who)
        served = Served(topics, cluster, logins, *executors, reporter.defect, groups)
        return Connections(Dispatch(served), partial(make_room, share=KafkaLoop.share), closed)

    tls = None if options.tls is None else server_context(options.tls)
    serving = KafkaServing(bound.socket, begin, KafkaLoop, tls, groups or nullcontext())
    warnings = (*listening.warnings, *map(str, topics.clashes()))
    told, own = str(address), str(bound.address)
    listens = own if told == own else f"{own}; they connect to {told}"
    return KafkaListener(serving, topics, executors, told, listens, warnings)


def _kind(reason: str) -> str:
    """A reason without what a client can make different each time."""
    return re.sub(r"\d+", "", reason.partition(":")[0])


def _advertised(options: GatewayOptions, bound: ListenAddress) -> Address:
    """As it was given, so that it fits a certificate; a port that was free is the one that was taken."""
    given = options.kafka.advertised if options.kafka and options.kafka.advertised else bound
    if given.host in EVERYWHERE:
        raise RefusedError(
            f"Kafka's clients cannot be told to connect to {given.host}", hint="pass --kafka-advertise HOST:PORT"
        )
    return Address(given.host, given.port or bound.port)


def _cluster_id(lake: Lake) -> str:
    """One for all gateways of a warehouse."""
    return sha256(scope_of(lake.warehouse, makes=True).name.encode()).hexdigest()[:22]


def _alone(lake: Lake, address: Address) -> Alone:
    own = Gateway(address.host, address.port)
    return Alone(_cluster_id(lake), ThisNode(own.node_id, own.host, own.port))


def _tell_full(reporter: OutageReporter, text: str) -> None:
    hint = "stop members that nobody needs, or start more gateways: each coordinates a part of the groups"
    reporter.outage(FULL, RefusedError(text, hint=hint))


def _tell_another(reporter: OutageReporter, address: Address, has_another: bool) -> None:
    what = f"the address {address} for Kafka's clients"
    if has_another:
        text = f"another gateway has {what} too, so a group of clients works at one of the two only"
        reporter.outage(what, RefusedError(text, hint="pass another --kafka-advertise to each, or stop one"))
    else:
        reporter.well(what)


def _coordinator(
    lake: Lake, url: str | None, address: Address, topics: ServedTopics, reporter: OutageReporter
) -> Coordinator | None:
    """The coordinator of groups; None without a database that gateways share. Raises `CoordinationError`."""
    try:
        groups, leases = groups_of(lake.warehouse, url, makes=True), kafka_gateways_of(lake.warehouse, url)
    except RefusedError:
        return None
    own, full = Gateway(address.host, address.port), partial(_tell_full, reporter)
    shared = Shared(groups, leases, partial(_tell_another, reporter, address))
    return Coordinator(_cluster_id(lake), own, shared, topics, lake.warehouse.clock, full)
