"""A gateway of a lake, made but not running yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import lithify
from lithify.api.lake import Lake
from lithify.api.wiring import FAIR, tasks_at_once
from lithify.api.wiring.appends import append_notes_of
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.gateway.access.hosts import AllowedHosts
from lithify.gateway.listening.bound import BoundSocket, bind
from lithify.gateway.listening.guarded import Callers, gateway_tokens, guarded, strangers_at
from lithify.gateway.listening.listen import Protection, may_listen
from lithify.gateway.listening.open_files import allow_files
from lithify.gateway.listening.tls import checked_tls
from lithify.gateway.process.audited import open_audit
from lithify.gateway.process.daemon import GatewayDaemon
from lithify.gateway.process.forgetting_keys import ForgettingKeys
from lithify.gateway.process.kafka_listener import open_kafka
from lithify.gateway.process.options import GatewayOptions
from lithify.gateway.process.serving import Serving
from lithify.gateway.server.app import Gateway, application
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.gateway.server.kinds import kind_of
from lithify.gateway.server.live.events import Events
from lithify.gateway.standing.opened import open_jobs
from lithify.gateway.standing.options import LEASE_MS, StandingOptions
from lithify.metrics.cleaner_metrics import CleanerMetrics
from lithify.metrics.registry import Registry
from lithify.reports.events import CleanerEvent
from lithify.service.look.assessed_topic import SharedTopics

JOBS_AT_ONCE = 4
"""Beside the cleaner's rounds: they share Spark's slots."""


def open_gateway(lake: Lake, options: GatewayOptions, **cleaner: Any) -> GatewayDaemon:
    """The daemon; `cleaner` are the arguments of `Lake.cleaner`.

    Raises `UnusableEnvironmentError` for an address in use, `RefusedError` where it may not listen, and what
    `Lake.cleaner` raises.
    """
    told = allow_files()
    with ExitStack() as taken:
        bound = bind(options.address, option="--listen")
        taken.callback(bound.socket.close)
        kafka = None if options.kafka is None else bind(options.kafka.listen, option="--kafka-listen")
        if kafka is not None:
            taken.callback(kafka.socket.close)
        daemon = _opened(lake, options, bound, kafka, **cleaner)
        taken.pop_all()
        return replace(daemon, warnings=daemon.warnings + told)


def _opened(
    lake: Lake, options: GatewayOptions, bound: BoundSocket, kafka: BoundSocket | None, **cleaner: Any
) -> GatewayDaemon:
    url, clock, name = cleaner.get("coordination_url"), lake.warehouse.clock, options.name
    tls = None if options.tls is None else checked_tls(options.tls, datetime.fromtimestamp(clock.now_ms() / 1000, UTC))
    tokens = gateway_tokens(lake.warehouse, url)
    given = (options.require_tokens, options.insecure_no_tokens, options.insecure_no_tls)
    protection = Protection(tokens.usable, tls is not None, *given)
    listening = may_listen(bound.address, protection)
    registry = Registry(lithify.__version__, clock.now_ms, options.metrics_per_topic)
    events, topics, notes = Events(), SharedTopics(), append_notes_of(lake.warehouse, url)
    tell = cleaner.pop("tell", lambda _event: None)

    def told(event: CleanerEvent) -> None:
        for listener in (events.told, measured.event, tell):
            listener(event)

    loop = lake.cleaner(cleaner_id=name, tell=told, **cleaner)
    measured = CleanerMetrics(registry, loop.options.interval_ms)
    measured.watch(loop.figures)
    loop.reporter.progress_listener = events.proceeded
    loop.share(topics)
    standing = StandingOptions(name, options.place, lease_ms=cleaner.get("lease_ms", LEASE_MS))
    runs = open_jobs(lake, standing, loop.stop, url, options.tell_job)
    jobs = Jobs(clock, JOBS_AT_ONCE, events.job)
    audited = None if options.audit is None else open_audit(options.audit, str(bound.address), loop.reporter)
    who = Callers(tokens, strangers_at(clock, None if audited is None else audited.file))
    serving_kafka = partial(open_kafka, url=url, shared=topics)
    listener = None if kafka is None else serving_kafka(lake, options, kafka, protection, who, loop.reporter)
    app = guarded(
        application(Gateway(name, lake, jobs, events, url, registry.render, notes, topics)),
        listening,
        tokens,
        hosts=AllowedHosts(options.hosts),
        kind_of=kind_of,
        strangers=who.strangers,
    )
    return GatewayDaemon(
        loop,
        Serving(app, bound, tls),
        jobs,
        runs,
        _warming(cleaner.get("spark_conf")),
        f"{'http' if tls is None else 'https'}://{bound.address}",
        listening.warnings + (() if listener is None else listener.warnings),
        None if notes is None else ForgettingKeys(lake.warehouse, notes, loop.stop),
        audited,
        listener,
    )


def _warming(spark_conf: Mapping[str, str] | None) -> Callable[[], None]:
    """Starts the Spark session that rounds will find, and its workers."""
    choice = SparkChoice(conf={**FAIR, **(spark_conf or {})})

    def warm() -> None:
        from lithify.spark.session.warm import warm

        warm(choice.factory(), tasks_at_once())

    return warm
