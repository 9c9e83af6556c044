"""The options by which a verb that runs for long serves metrics of its work, in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lithify.cli.parameters import AddressType
from lithify.errors import UnusableEnvironmentError
from lithify.errors.extras import GATEWAY

if TYPE_CHECKING:
    from lithify.metrics.meter import Meter

MOST_TOPICS = 100_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MetricsAsked:
    """Where metrics are to be served, None for nowhere, and how many topics get a label."""

    address: tuple[str, int] | None
    topics: int

    @contextmanager
    def served(self) -> Iterator[Meter]:
        """What takes the metrics of the work inside of it, and serves them meanwhile if that was asked for.

        Raises `UnusableEnvironmentError` if it cannot listen there, and without prometheus-client.
        """
        from lithify.metrics.meter import NoMeter

        if self.address is None:
            yield NoMeter()
            return
        try:
            from lithify.metrics.registry import Registry
        except ModuleNotFoundError as error:
            raise UnusableEnvironmentError(f"what serves metrics is missing: {error}", hint=GATEWAY) from error
        import lithify
        from lithify.api.wiring.system_clock import SystemClock
        from lithify.metrics.endpoint import served

        registry = Registry(lithify.__version__, SystemClock().now_ms, self.topics)
        with served(*self.address, registry.render, option="--metrics-port"):
            yield registry


def metrics_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--metrics-port` and `--metrics-per-topic`, as one value `metrics`."""

    @wraps(function)
    def with_metrics(
        *given: Any, metrics_port: tuple[str, int] | None, metrics_per_topic: int | None, **more: Any
    ) -> Any:
        if metrics_port is None and metrics_per_topic is not None:
            raise click.UsageError("--metrics-per-topic needs --metrics-port")
        return function(*given, metrics=MetricsAsked(metrics_port, metrics_per_topic or 0), **more)

    for option in (
        click.option(
            "--metrics-per-topic",
            type=click.IntRange(1, MOST_TOPICS),
            metavar="N",
            help="Also label metrics by topic, of N topics at most.",
        ),
        click.option(
            "--metrics-port",
            type=AddressType(),
            metavar="PORT|HOST:PORT",
            help="Serve metrics at http://HOST:PORT/metrics for Prometheus. Default of HOST: 127.0.0.1.",
        ),
    ):
        with_metrics = option(with_metrics)
    return with_metrics


def in_turn(*calls: Callable[[T], object]) -> Callable[[T], None]:
    """Calls all of them with what it is called with."""

    def call_all(given: T) -> None:
        for call in calls:
            call(given)

    return call_all
