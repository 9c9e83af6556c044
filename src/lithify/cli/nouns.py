"""Groups of verbs: their help, the names that they answer to, and the import of the one verb that runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pkgutil import resolve_name
from typing import Any, cast

import click

from lithify.cli.invocation import shared_options

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "info": ("describe", "status"),
    "describe": ("info", "status"),
    "alter": ("edit",),
    "edit": ("alter",),
    "create": ("add",),
    "add": ("create",),
    "delete": ("remove",),
    "remove": ("delete",),
    "list": ("status",),
}
"""Verbs that nouns name differently, as each was there first: every noun takes all of these names."""

_OF_OTHER_SYSTEMS = {"cursor": "group", "purge": "retain"}
"""Words of MapR's for what has another one here."""
_NAMED_AT_MOST = 3


class Verbs(MutableMapping[str, click.Command]):
    """Commands by name, in order; each is imported, by `module:attribute` below `lithify.cli`, when it is used."""

    def __init__(self, where: Mapping[str, str | click.Command]) -> None:
        self._where = dict(where)

    def __getitem__(self, name: str) -> click.Command:
        where = self._where[name]
        if isinstance(where, str):
            where = self._where[name] = cast(click.Command, resolve_name(f"lithify.cli.{where}"))
        return where

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._where[name] = command

    def __delitem__(self, name: str) -> None:
        del self._where[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


class Nouns(click.Group):
    """A group of verbs, listed in the order in which they were given; alone it prints its help."""

    def __init__(self, *args: Any, verbs: Mapping[str, str | click.Command], **more: Any) -> None:
        super().__init__(*args, **more)
        self.commands = Verbs(verbs)
        self.no_args_is_help = True
        self.params += shared_options(all_shown=isinstance(self, Subjects))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name, or the one for which other nouns, or Kafka's tools, have that name."""
        return self.commands.get(self._own_name(cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names the commands of other nouns that have the name, where this one has none."""
        if self.get_command(ctx, args[0]) is None:
            there = [*_paths(ctx.find_root().command, _OF_OTHER_SYSTEMS.get(args[0], args[0]), "lithify")]
            if 0 < len(there) <= _NAMED_AT_MOST:
                raise click.UsageError(f"No such command '{args[0]}': did you mean {' or '.join(there)}?", ctx)
        return super().resolve_command(ctx, args)

    def _own_name(self, name: str) -> str:
        return next((own for own in (name, *_SYNONYMS.get(name, ())) if own in self.commands), name)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = [(name, self._own_name(name)) for name in _SYNONYMS]
        if others := [f"{name} runs {own}" for name, own in names if own != name]:
            formatter.write_paragraph()
            formatter.write_text(f"Aliases: {', '.join(others)}.")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _list(formatter, "Commands", self.commands.values())


class Subjects(Nouns):
    """A group whose help lists its verbs by subject."""

    def __init__(self, *args: Any, subjects: Mapping[str, Mapping[str, str | click.Command]], **more: Any) -> None:
        super().__init__(*args, verbs={name: one for verbs in subjects.values() for name, one in verbs.items()}, **more)
        self._subjects = subjects

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for subject, verbs in self._subjects.items():
            _list(formatter, subject, (self.commands[name] for name in verbs))


def _paths(command: click.Command, name: str, path: str) -> Iterator[str]:
    """How the commands of that name below `command` are called."""
    for own, below in command.commands.items() if isinstance(command, click.Group) else ():
        if own == name:
            yield f"`{path} {own}`"
        yield from _paths(below, name, f"{path} {own}")


_WHOLE = 1000
"""Characters of a summary: click would cut it at the width of the terminal."""


def _list(formatter: click.HelpFormatter, title: str, commands: Iterable[click.Command]) -> None:
    with formatter.section(title):
        formatter.write_dl([(command.name or "", command.get_short_help_str(_WHOLE)) for command in commands])
