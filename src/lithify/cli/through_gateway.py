"""Which gateway a command line asks instead of opening a warehouse, and which verbs cannot ask one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lithify.errors import RefusedError

if TYPE_CHECKING:
    from lithify.gateway.client.address import Trust
    from lithify.gateway.client.completion_names import RemoteNames
    from lithify.gateway.client.remote_lake import RemoteLake

GATEWAY_VARIABLE = "LITHIFY_GATEWAY"
_DIRECT = (
    *("hydrate", "repair", "doctor", "token"),
    *("cleaner", "gateway run", "kafka", "pulsar ingest"),
    *(f"replica {verb}" for verb in ("add", "edit", "pause", "resume", "remove", "run", "verify", "promote")),
)
"""Verbs that need the warehouse itself, or the machine on which they run."""


@dataclass(slots=True)
class GatewayFlags:
    """What `--gateway…` say."""

    url: str | None = None
    token_file: str | None = None
    ca: str | None = None
    insecure_no_tls: bool = False

    def opened(self, url: str) -> RemoteLake:
        """The lake behind the gateway at that URL, until the verb ends. Raises `RefusedError`."""
        from lithify.gateway.client.remote_lake import remote_lake

        lake = remote_lake(url, self._trust())
        click.get_current_context().call_on_close(lake.close)
        return lake

    def names(self, url: str) -> RemoteNames:
        """The names there, for completions."""
        from lithify.gateway.client.completion_names import RemoteNames

        return RemoteNames(url, self._trust())

    def _trust(self) -> Trust:
        from lithify.gateway.client.address import Trust

        return Trust(self.token_file, self.ca, self.insecure_no_tls)


def variable() -> str | None:
    """The gateway that the environment names."""
    return os.environ.get(GATEWAY_VARIABLE, "").strip() or None


def check_verb(context: click.Context, url: str) -> None:
    """Raises `RefusedError` if a verb cannot ask the gateway at that URL. A gateway has a database of its own."""
    path = context.command_path.partition(" ")[2]
    if any(f"{path} ".startswith(f"{one} ") for one in _DIRECT):
        raise refusal(path, url)
    if context.get_parameter_source("coordination_url") is ParameterSource.ENVIRONMENT:
        context.params["coordination_url"] = None


def refusal(what: str, url: str) -> RefusedError:
    """What is said of a verb or an option that needs the warehouse itself."""
    return RefusedError(
        f"{what} is not available through a gateway, such as {url}",
        hint="run it where the warehouse can be reached, with --warehouse or --catalog instead of --gateway",
    )


def options(option: Callable[..., click.Option], *, shown: bool) -> list[click.Option]:
    """The flags; unless they are all `shown`, help lists `--gateway` only."""
    rest: dict[str, Any] = {"hidden": not shown}
    return [
        option(
            "--gateway",
            metavar="URL",
            help="Ask the gateway at http://HOST:PORT instead of opening a warehouse. Default: $LITHIFY_GATEWAY.",
        ),
        option(
            "--gateway-token-file",
            metavar="FILE",
            help="File with the token for the gateway. Default: $LITHIFY_GATEWAY_TOKEN_FILE.",
            **rest,
        ),
        option(
            "--gateway-ca",
            metavar="FILE",
            help="Certificates in PEM that are trusted instead of the machine's. Default: $LITHIFY_GATEWAY_CA.",
            **rest,
        ),
        option(
            "--gateway-insecure-no-tls",
            is_flag=True,
            help="Send the token over http:// to another machine: others on the network can read it.",
            **rest,
        ),
    ]
