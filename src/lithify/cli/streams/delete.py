"""`lithify stream delete` (C56)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say, show
from lithify.errors import RefusedError
from lithify.model.settings.units import plural


@verb("delete")
@parameters.stream
@click.option("--topics", is_flag=True, help="Delete its topics with all records as well.")
@click.option("--yes", is_flag=True, help="Delete the stream. Without --yes, only show the number of topics.")
def delete(invocation: Invocation, stream_name: str, topics: bool, yes: bool) -> None:
    """Delete a stream, and with --topics its topics irreversibly. Without --yes nothing is changed.

    A stream that has topics is refused without --topics. Files of other programs in their folders are not
    deleted, and are listed.

    \b
    Examples:
      lithify stream delete eu --yes
      lithify stream delete eu --topics --yes
    """
    stream = invocation.open_lake().stream(stream_name)
    stream_topics = stream.topics()
    name, number = stream.name, plural(len(stream_topics), "topic")
    if stream_topics and not topics:
        raise RefusedError(f"{name}: the stream has {number}", hint="--topics deletes the topics as well")
    if not yes:
        records = sum(topic.info().records for topic in stream_topics)
        with_topics = f" with {number} and {plural(records, 'record')}" if stream_topics else ""
        refuse(f"{name}: nothing was deleted", f"deletes the stream{with_topics} irreversibly")
    report = stream.delete(topics=topics)
    if invocation.printed(report):
        return
    with_topics = f" with {plural(len(report.topics), 'topic')}" if report.topics else ""
    say(f"{name}: deleted{with_topics}")
    if report.left:
        say(f"{plural(len(report.left), 'file')} in their folders do not belong to Lithify and remain:")
        show(report.left)
