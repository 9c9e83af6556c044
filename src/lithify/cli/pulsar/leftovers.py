"""`lithify pulsar leftovers`: lists and deletes ledgers that rounds left and no round finds any more (C55)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lithify.cli.invocation import Invocation, verb
from lithify.cli.pulsar.pulsar_settings import bookkeeper_options, cluster_config, cluster_options, say_notes
from lithify.cli.terminal.output import say


@verb("leftovers")
@cluster_options
@bookkeeper_options
@click.option("--yes", is_flag=True, help="Delete the ledgers. Without --yes, only list them.")
def leftovers(
    invocation: Invocation, service_url: str, admin_url: str, client_conf: Path | None, yes: bool, **given: Any
) -> None:
    """List or delete ledgers that rounds left and no round finds any more.

    A round that was killed leaves a compacted ledger, which the next round of the topic deletes. If the
    topic, or its subscription __compaction, is deleted before that, no round finds the ledger. This verb
    looks for such ledgers in BookKeeper. It needs Pulsar's jars.

    \b
    A ledger is one of them if Lithify made it, and
    - the admin interface does not find its topic, and BookKeeper has no other
      ledger of that topic; or
    - its topic does not serve it, although it is compacted up to an entry that
      the topic still has, and no compaction of the topic runs.

    \b
    Examples:
      lithify pulsar leftovers --client-conf client.conf
      lithify pulsar leftovers --client-conf client.conf --yes
    """
    from lithify.api.pulsar import left_ledgers
    from lithify.reports.pulsar.leftovers import leftovers_text

    report = left_ledgers(cluster_config(service_url, admin_url, client_conf), delete=yes, **given)
    say_notes(report.notes)
    if not invocation.printed(report):
        for line in leftovers_text(report):
            say(line)
