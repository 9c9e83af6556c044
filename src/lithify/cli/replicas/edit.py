"""`lithify replica edit`, `pause`, `resume` and `remove`: change a definition, even while its topics are copied."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.replicas.replica_parameters import replica, summary
from lithify.cli.terminal.output import say


@verb("edit")
@replica
@click.option("--throttle", metavar="RATE", help="Copy at most this much per second in total: 20MB/s.")
@click.option("--unlimited", is_flag=True, help="Remove the limit.")
@click.option(
    "--sync-groups/--no-sync-groups", default=None, help="Copy the committed positions of consumer groups as well."
)
@click.option("--compact/--no-compact", default=None, help="Compact the replica's topics themselves, or no longer.")
@parameters.coordination_url
def edit(  # noqa: PLR0913, PLR0917 - the flags of the verb, by name
    invocation: Invocation,
    name: str,
    throttle: str | None,
    unlimited: bool,
    sync_groups: bool | None,
    compact: bool | None,
    coordination_url: str | None,
) -> None:
    """Change the rate of a replica, whether committed positions are copied, or whether it compacts by itself.

    A rate is in force within seconds, also for a copy that is under way. With --no-sync-groups the positions
    at the target remain unchanged. --compact and --no-compact are in force with the next copy, which
    --no-compact makes drop the replica's own compacted views. For another source or target, remove the
    replica and add one.

    \b
    Examples:
      lithify replica edit orders-to-backup --throttle 5MB/s
      lithify replica edit orders-to-backup --unlimited
      lithify replica edit orders-to-backup --sync-groups
      lithify replica edit clicks-to-backup --compact
    """
    if throttle is not None and unlimited:
        raise click.UsageError("pass either --throttle or --unlimited")
    if throttle is None and not unlimited and sync_groups is None and compact is None:
        raise click.UsageError("pass --throttle, --unlimited, --[no-]sync-groups or --[no-]compact")
    rate = throttle if throttle is not None or unlimited else ...
    replicas = invocation.open_lake().replicas(coordination_url=coordination_url)
    info = replicas.edit(name, throttle=rate, sync_groups=sync_groups, compact=compact)
    if not invocation.printed(info):
        say(summary(info))


@verb("pause")
@replica
@parameters.coordination_url
def pause(invocation: Invocation, name: str, coordination_url: str | None) -> None:
    """Stop copying a replica until it is resumed.

    A copy that is under way ends within seconds; the replica remains at the version that it has, and can
    be read. Files that are copied already are used later.

    \b
    Examples:
      lithify replica pause orders-to-backup
    """
    info = invocation.open_lake().replicas(coordination_url=coordination_url).pause(name)
    if not invocation.printed(info):
        say(summary(info))


@verb("resume")
@replica
@parameters.coordination_url
def resume(invocation: Invocation, name: str, coordination_url: str | None) -> None:
    """Resume a paused replica.

    \b
    Examples:
      lithify replica resume orders-to-backup
    """
    info = invocation.open_lake().replicas(coordination_url=coordination_url).resume(name)
    if not invocation.printed(info):
        say(summary(info))


@verb("remove")
@replica
@parameters.coordination_url
def remove(invocation: Invocation, name: str, coordination_url: str | None) -> None:
    """Remove the definition of a replica; its topics remain.

    A copy that is under way ends within seconds. The topics at the target remain, at the versions that they
    have: `lithify replica promote` there makes one a topic of its own, `lithify topic delete` deletes it. The
    same replica can be added again, and continues.

    \b
    Examples:
      lithify replica remove orders-to-backup
    """
    info = invocation.open_lake().replicas(coordination_url=coordination_url).remove(name)
    if not invocation.printed(info):
        say(f"{summary(info)}: removed; the topics at {info.target} remain")
