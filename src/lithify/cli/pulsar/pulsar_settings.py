"""How verbs reach a Pulsar cluster: flags, and Pulsar's own `client.conf`, which alone may have secrets.

--client-conf FILE          ─┐
--service-url, --admin-url  ─┴─► the lower ones win
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lithify.cli.parameters import Function
from lithify.cli.terminal.output import say, say_warnings

if TYPE_CHECKING:
    from lithify.pulsar.client import ClientConfig

_OPTIONS = (
    click.option("--service-url", default="", metavar="URL", help="URL of the brokers: pulsar://HOST:6650."),
    click.option("--admin-url", default="", metavar="URL", help="URL of the admin interface: http://HOST:8080."),
    click.option(
        "--client-conf",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Pulsar's client.conf with URLs, TLS and authentication.",
    ),
)
_BOOKKEEPER = (
    click.option("--jars", metavar="DIR", help="Directory with Pulsar's jars. Default: $LITHIFY_PULSAR_JARS."),
    click.option(
        "--metadata-url",
        metavar="URL",
        help="URL of the metadata store: zk:HOST:2181. Default: what the brokers report, to superusers only.",
    ),
)


skip_damaged = click.option(
    "--skip-damaged",
    is_flag=True,
    help="Keep batches whole that their producers wrote damaged, and name them, instead of failing.",
)


def cluster_options(function: Function) -> Function:
    """Gives a verb the flags that `cluster_config` takes."""
    return _with(_OPTIONS, function)


def bookkeeper_options(function: Function) -> Function:
    """Gives a verb the flags that say how BookKeeper is reached: `jars`, `metadata_url`."""
    return _with(_BOOKKEEPER, function)


def cluster_config(service_url: str, admin_url: str, client_conf: Path | None) -> ClientConfig:
    """Says, from then on, how long a broker is waited for that is away. Raises `InvalidSettingError`."""
    from lithify.pulsar.client import ClientConfig, conf_of
    from lithify.pulsar.client.patience import LOG

    say_warnings(LOG)
    return ClientConfig.of(service_url, admin_url, None if client_conf is None else conf_of(client_conf))


def say_notes(notes: Sequence[str]) -> None:
    """Notes for the reader of a report, which are not errors."""
    for note in notes:
        say(f"note: {note}")


def _with(options: Sequence[Callable[[Function], Function]], function: Function) -> Function:
    for option in reversed(options):
        function = option(function)
    return function
