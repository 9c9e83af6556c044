"""`lithify replica`: the noun and its verbs."""

from __future__ import annotations

import click

from lithify.cli.invocation import Nouns
from lithify.cli.replicas.add import add
from lithify.cli.replicas.edit import edit, pause, remove, resume
from lithify.cli.replicas.promote import promote
from lithify.cli.replicas.run import run
from lithify.cli.replicas.status import status
from lithify.cli.replicas.verify import verify


@click.group("replica", cls=Nouns)
def replica_group() -> None:
    """Copy topics to another warehouse and keep the copies up to date.

    A replica is at every moment exactly what its source was at some version. In a plain folder or bucket it is
    a backup; on another site it takes over: `lithify replica promote`.
    """


REPLICA_VERBS: tuple[click.Command, ...] = (add, edit, pause, resume, remove, status, run, verify, promote)
