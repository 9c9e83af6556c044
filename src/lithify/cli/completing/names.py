"""What arguments and options are completed with: names in the warehouse that the command line names, settings, files.

Nothing is opened before a name is asked for, so that verbs, options and choices are completed fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from lithify.api.wiring.completion_names import CompletionNames
    from lithify.cli.through_gateway import GatewayFlags
    from lithify.gateway.client.completion_names import RemoteNames

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class _Place(Protocol):
    """What an `Invocation` says of the place."""

    warehouse: str | None
    catalog: str | None
    gateway: GatewayFlags

    def gateway_url(self) -> str | None: ...


def topics(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _starting(_completions(ctx).topics(), incomplete)


def streams(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _starting(_completions(ctx).streams(), incomplete)


def groups(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _starting(_completions(ctx).groups(), incomplete)


def replicas(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _starting(_completions(ctx).replicas(), incomplete)


def standing_jobs(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _starting(_completions(ctx).standing_jobs(), incomplete)


def tokens(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _starting(_completions(ctx).tokens(), incomplete)


def targets(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Topics, and streams as `STREAM/`, in which topics may be created."""
    there = _completions(ctx)
    return _starting([*there.topics(), *(f"{stream}/" for stream in there.streams())], incomplete)


def either(*some: Complete) -> Complete:
    """Names of several kinds."""
    return lambda ctx, param, incomplete: [item for complete in some for item in complete(ctx, param, incomplete)]


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def directories(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def settings(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of settings, of a stream's attributes as well where the verb takes a stream."""
    return _starting(_settings(ctx), incomplete)


def assigned_settings(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`min.compaction.lag.ms=`, for a value to follow."""
    return _starting((f"{name}=" for name in _settings(ctx)), incomplete)


def _settings(ctx: click.Context) -> list[str]:
    from lithify.model.settings.stream_attributes import ATTRIBUTES, INHERITABLE
    from lithify.model.settings.table import SETTINGS

    of_stream = any(param.name == "stream_name" for param in ctx.command.params)
    return sorted((*ATTRIBUTES, *INHERITABLE) if of_stream else SETTINGS)


def _completions(ctx: click.Context) -> CompletionNames | RemoteNames:
    place: _Place = ctx.obj
    if url := place.gateway_url():
        return place.gateway.names(url)
    from lithify.api.wiring.completion_names import CompletionNames

    return CompletionNames(place.warehouse, place.catalog, ctx.params.get("coordination_url"))


def _starting(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
