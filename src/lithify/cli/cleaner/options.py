"""The options of a process that cleans: a cleaner, or a gateway, which is one with a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from lithify.cli import parameters
from lithify.cli.parameters import DurationType
from lithify.ports.leases import LEAST_LEASE_MS

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--threads",
        type=click.IntRange(1, 64),
        metavar="N",
        default=1,
        show_default=True,
        help="Number of batches of rounds that run at once.",
    ),
    click.option(
        "--interval",
        "interval_ms",
        type=DurationType(),
        default="15s",
        show_default=True,
        help="Time between checks for work.",
    ),
    parameters.coordination_url,
    click.option(
        "--lease",
        "lease_ms",
        type=DurationType(LEAST_LEASE_MS),
        default="30s",
        show_default=True,
        help="How long a cleaner may be silent before others take over its logs.",
    ),
    click.option(
        "--sweep-interval",
        "sweep_interval_ms",
        type=DurationType(),
        default="1h",
        show_default=True,
        help="Time between two sweeps of a topic that changes.",
    ),
    parameters.rates("rounds"),
    parameters.task_memory,
    parameters.spark_conf,
)


def cleaner_options(function: F) -> F:
    """Adds them, in this order."""
    decorated: Any = function
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return cast(F, decorated)
