"""What verbs on replicas share: the argument, and how they print what is defined."""

from __future__ import annotations

import click

from lithify.cli.completing import names
from lithify.model.settings.units import format_bytes
from lithify.reports.replicas.status import ReplicaInfo

replica = click.argument("name", metavar="NAME", shell_complete=names.replicas)


def summary(info: ReplicaInfo) -> str:
    """`replica orders-to-backup: orders → /backup, at most 20 MiB/s, paused`"""
    rate = "" if info.throttle_bytes is None else f", at most {format_bytes(info.throttle_bytes)}/s"
    groups = ", with committed positions" if info.sync_groups else ""
    compact = ", compacts by itself" if info.compact else ""
    paused = ", paused" if info.paused else ""
    return f"replica {info.name}: {info.source} → {info.target}{rate}{groups}{compact}{paused}"
