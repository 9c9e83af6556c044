"""The settings of Kafka's clients from a file, from flags and from the servers; secrets come from the file or
the environment only, since `ps` shows a command line.

    --kafka-conf-file client.properties   ─┐
    --kafka-conf NAME=VALUE               ─┼─► the lower one wins ─► ${env:NAME} is replaced
    --bootstrap-servers HOST:PORT         ─┘
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from lithify.cli.parameters import Function, pairs
from lithify.errors import RefusedError
from lithify.model.settings.secrets import is_secret

SERVERS = "bootstrap.servers"
LARGEST_FILE_BYTES = 2**20

_OPTIONS = (
    click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Servers of the Kafka cluster."),
    click.option(
        "--kafka-conf-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Settings of Kafka's client, as in its client.properties, passwords too.",
    ),
    pairs(
        "--kafka-conf", "A setting of Kafka's client; may be repeated. ${env:NAME} in it is an environment variable."
    ),
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
                hint=f"put it into a file, --kafka-conf-file FILE, or name a variable: '{name}=${{env:NAME}}'",
            )
    servers = {} if bootstrap_servers is None else {SERVERS: bootstrap_servers}
    found = {**(read_properties(kafka_conf_file) if kafka_conf_file else {}), **kafka_conf, **servers}
    if not found.get(SERVERS):
        raise click.UsageError(f"no --bootstrap-servers, and no {SERVERS} in a --kafka-conf-file")
    return {name: _filled_in(name, value) for name, value in found.items()}


_REFERENCE = re.compile(r"\$\{env:([^}]*)\}")
"""As Kafka's own `EnvVarConfigProvider` writes it."""


def _filled_in(name: str, value: str) -> str:
    def variable(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise RefusedError(f"{name}: there is no environment variable {match[1]}", hint="set it, and export it")
        return found

    return _REFERENCE.sub(variable, value)


def read_properties(path: Path) -> Mapping[str, str]:
    """The settings in a file of Java properties. Raises `RefusedError`."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"{path} cannot be read: {error}") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise RefusedError(f"{path} is larger than {LARGEST_FILE_BYTES} bytes: it is no file of settings")
    return dict(_property(line) for line in _lines(text))


def _lines(text: str) -> Iterator[str]:
    """Without comments; a line that ends with a backslash continues in the next one."""
    begun = ""
    for line in map(str.lstrip, text.splitlines()):
        if not begun and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun += line[:-1]
            continue
        yield begun + line
        begun = ""
    if begun:
        yield begun


_NAME = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _property(line: str) -> tuple[str, str]:
    match = _NAME.fullmatch(line)
    assert match is not None  # it matches everything
    name, value = (_ESCAPED.sub(_character, part) for part in match.groups())
    return name, value.rstrip()


def _character(escaped: re.Match[str]) -> str:
    found = escaped[1]
    return chr(int(found[1:], 16)) if len(found) == 5 else _LETTERS.get(found, found)
