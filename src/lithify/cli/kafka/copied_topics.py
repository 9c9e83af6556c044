"""The options by which `lithify kafka ingest` and `lithify kafka import` choose topics, and what is copied of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lithify.cli.completing import names


def copied_topics(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--topic`, `--topic-pattern` and `--into`."""
    options = (
        click.option("--topic", "topics", multiple=True, metavar="T", help="Copy this Kafka topic. Repeatable."),
        click.option("--topic-pattern", "pattern", metavar="REGEX", help="Copy all topics whose whole name matches."),
        click.option(
            "--into",
            metavar="TOPIC|STREAM/",
            shell_complete=names.targets,
            help="Topic or stream that receives the copy. Default: the same name in the stream default.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def check_chosen(topics: tuple[str, ...], pattern: str | None) -> None:
    """Raises `UsageError` unless topics are named in one way."""
    if bool(topics) == (pattern is not None):
        raise click.UsageError("pass either --topic or --topic-pattern")


for_null_keys = click.option(
    "--null-key", type=click.Choice(("reject", "drop")), default="reject", help="What to do with records without a key."
)
