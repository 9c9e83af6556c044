"""The settings of Kafka's clients from a file, from flags and from the servers; secrets come from the file or
the environment only, since `ps` shows a command line.

    --kafka-conf-file client.properties   ─┐
    --kafka-conf NAME=VALUE               ─┼─► the lower one wins ─► ${env:NAME} is replaced
    --bootstrap-servers HOST:PORT         ─┘
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import click

from lithify.cli.parameters import DurationType, Function, pairs
from lithify.cli.terminal.output import say
from lithify.errors import RefusedError
from lithify.kafka_client.dialects import check_settings, refused_settings
from lithify.kafka_client.names import check_names, without_unknown
from lithify.kafka_client.properties import read_properties
from lithify.model.settings.secrets import is_secret, keep

SERVERS = "bootstrap.servers"

_OPTIONS = (
    click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Bootstrap servers of the Kafka cluster."),
    click.option(
        "--kafka-conf-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="File with client settings, such as Kafka's client.properties; may hold passwords.",
    ),
    pairs(
        "--kafka-conf",
        "A Kafka client setting, by Java's name. Repeatable. ${env:NAME} is replaced by that environment variable.",
    ),
)


wait_option = click.option(
    "--timeout",
    "timeout_ms",
    type=DurationType(),
    default="30s",
    show_default=True,
    help="How long to wait for each response of Kafka.",
)


def kafka_options(function: Function) -> Function:
    """Gives a verb the flags that `kafka_settings` takes."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def kafka_settings(
    bootstrap_servers: str | None, kafka_conf_file: Path | None, kafka_conf: Mapping[str, str]
) -> dict[str, str]:
    """All settings that the flags give. Raises `RefusedError` or `click.UsageError`."""
    for name, value in kafka_conf.items():
        if is_secret(name) and not _REFERENCE.fullmatch(value):
            raise RefusedError(
                f"--kafka-conf {name}: all users of the machine can see a secret on a command line",
                hint=f"put it into a file, --kafka-conf-file FILE, or use a variable: '{name}=${{env:NAME}}'",
            )
    check_names(kafka_conf, strict=True)
    check_settings(kafka_conf)
    servers = {} if bootstrap_servers is None else {SERVERS: bootstrap_servers}
    shared = read_properties(kafka_conf_file) if kafka_conf_file else {}
    if left_out := refused_settings(shared):  # other clients have the same file
        say(f"not used, as they cannot be set here: {', '.join(sorted(left_out))}")
    of_file = {name: value for name, value in shared.items() if name not in left_out}
    settings = {**of_file, **kafka_conf, **servers}
    if not settings.get(SERVERS):
        raise click.UsageError(f"pass --bootstrap-servers, or set {SERVERS} in a --kafka-conf-file")
    filled = {name: _filled_in(name, value) for name, value in settings.items()}
    keep(filled)
    return filled


def settings_used(given: Mapping[str, str]) -> dict[str, str]:
    """The settings that a Kafka client has; reports which ones of a shared file are left out."""
    used = without_unknown(given)
    if unknown := given.keys() - used.keys():
        say(f"not used, as Kafka's clients do not support them: {', '.join(sorted(unknown))}")
    return used


_REFERENCE = re.compile(r"\$\{env:([^}]*)\}")
"""As Kafka's own `EnvVarConfigProvider` writes it."""


def _filled_in(name: str, value: str) -> str:
    def variable(match: re.Match[str]) -> str:
        content = os.environ.get(match[1])
        if content is None:
            raise RefusedError(f"{name}: the environment variable {match[1]} is not set", hint="set and export it")
        return content

    return _REFERENCE.sub(variable, value)
