"""Positions of consumer groups that `lithify kafka publish` translates: its options, and what it prints of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation
from lithify.cli.terminal.drawing import columns
from lithify.errors import ConflictError, RefusedError
from lithify.reports.page.wording import count, visible

if TYPE_CHECKING:
    from lithify.api.topic import Topic
    from lithify.kafka import PublishReport, TranslatedPosition

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def group_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options on groups."""
    options = (
        click.option(
            "--translate-groups",
            "positions",
            type=FILE,
            metavar="FILE",
            help="Give consumer groups the positions that they have in FILE, as kafka-consumer-groups prints them.",
        ),
        click.option(
            "--group", "groups", multiple=True, metavar="GROUP", help="The same for a group of this lake. Repeatable."
        ),
        parameters.coordination_url,
        click.option(
            "--export",
            type=click.Path(dir_okay=False, writable=True, path_type=Path),
            metavar="FILE",
            help="Commit no positions of groups, but write them for kafka-consumer-groups --reset-offsets --from-file.",
        ),
        click.option(
            "--checkpoints",
            metavar="ALIAS",
            help="Also write the positions as MirrorMaker 2 does, into ALIAS.checkpoints.internal.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class AskedGroups:
    """What the command line gives for groups."""

    positions: Path | None
    groups: tuple[str, ...]
    coordination_url: str | None
    export: Path | None
    checkpoints: str | None

    @classmethod
    def taken(cls, given: dict[str, Any]) -> AskedGroups:
        """The values of `group_options`, removed from `given`."""
        return cls(**{field.name: given.pop(field.name) for field in fields(cls)})

    def for_topic(self, topic: Topic) -> dict[str, Any]:
        """The arguments of `publish`. Raises `RefusedError` and what the groups of a lake raise."""
        from lithify.api.groups import known_group
        from lithify.kafka import group_offsets, read_positions

        if (self.export or self.checkpoints) and self.positions is None and not self.groups:
            text = "--export and --checkpoints need positions of groups: pass --translate-groups or --group"
            raise click.UsageError(text)
        groups = [known_group(topic.warehouse, name, self.coordination_url) for name in self.groups]
        of_lake = [position for group in groups for position in group_offsets(topic, group)]
        positions = (*(read_positions(self.positions) if self.positions else ()), *of_lake)
        return {"groups": positions, "commits_groups": self.export is None, "checkpoints": self.checkpoints}

    def export_from(self, report: PublishReport) -> None:
        """Writes them, if that is requested and they are there. Raises `RefusedError`."""
        from lithify.kafka import GroupOffset
        from lithify.kafka.publisher.group_offsets import written

        if self.export is not None and report.groups:
            positions = [GroupOffset(p.group, report.to, p.partition, p.offset) for p in report.groups]
            try:
                self.export.write_text(written(positions))
            except OSError as error:
                raise RefusedError(f"{self.export} cannot be written: {error}", hint="choose another file") from error


def group_lines(positions: Sequence[TranslatedPosition]) -> list[str]:
    """A table of them, behind an empty line; nothing where there are none."""
    names = ("GROUP", "PARTITION", "SOURCE", "TARGET", "READ AGAIN", "STATE")
    table = columns(names, map(_row, positions), left=("GROUP", "STATE"))
    return ["", *table] if positions else []


def ended(invocation: Invocation, positions: Sequence[TranslatedPosition]) -> int:
    """The exit code: 1 where groups have members, and so did not get positions."""
    active = sorted({position.group for position in positions if position.state == "active"})
    for group in active:
        text = f"group {group} has members in this cluster, so no position was written for it"
        error = ConflictError(text, hint="stop the members, then run the command again")
        invocation.say_failure(error.message, error.hint, error.code, 1, group=group)
    return 1 if active else 0


def _row(position: TranslatedPosition) -> tuple[str, ...]:
    numbers = map(count, (position.partition, position.source_offset, position.offset))
    again = f"≤ {count(position.again)}" if position.again else "0"
    state = position.state if position.found is None else f"{position.state}: it is at {count(position.found)}"
    return visible(position.group), *numbers, again, state
