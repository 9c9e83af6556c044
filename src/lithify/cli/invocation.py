"""Shared by all verbs: the flags that may come before or after the verb, and opening the lake.

    lithify --json --warehouse W compact orders        the same as
    lithify compact orders --json --warehouse W

The flags write into one `Invocation`, which the group creates and passes to every verb.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import click

from lithify.cli import through_gateway
from lithify.cli.completing import names
from lithify.cli.terminal.output import flush, print_json, say, say_error, say_json, say_lines
from lithify.cli.through_gateway import GatewayFlags
from lithify.errors import RefusedError
from lithify.errors.redaction import error_text
from lithify.model.names import parse_topic

if TYPE_CHECKING:
    from lithify.api.lake import Lake
    from lithify.api.topic import Topic

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

F = TypeVar("F", bound=Callable[..., Any])


class Result(Protocol):
    """What a verb prints."""

    def to_json(self) -> Mapping[str, Any]: ...


@dataclass(slots=True)
class Invocation:
    """One run of the program: the location of the data, and the form of the output."""

    json: bool = False
    debug: bool = False
    warehouse: str | None = None
    catalog: str | None = None
    gateway: GatewayFlags = field(default_factory=GatewayFlags)
    place: dict[str, Any] = field(default_factory=dict)
    """The topic and partition that the verb works on, for the JSON of an error."""
    standing: str = ""
    """What is true of the data if the program is interrupted now; empty for verbs that only read and print."""

    def gateway_url(self) -> str | None:
        """The gateway that the flags or the environment name; flags that name a warehouse replace the environment."""
        if self.gateway.url is None and self.warehouse is None and self.catalog is None:
            return through_gateway.variable()
        return self.gateway.url

    def open_lake(self) -> Lake:
        """The lake that the flags name, or one with the same methods behind a gateway. Raises `WarehouseError`."""
        named = {"--warehouse": self.warehouse, "--catalog": self.catalog, "--gateway": self.gateway.url}
        if len(given := [flag for flag, value in named.items() if value is not None]) > 1:
            raise RefusedError(f"{' and '.join(given)} are both set", hint="use only one of them")
        if self.debug and not any(isinstance(handler, _ToThePerson) for handler in logging.getLogger().handlers):
            logging.getLogger().addHandler(_ToThePerson())
        if url := self.gateway_url():
            return cast("Lake", self.gateway.opened(url))
        import lithify

        return lithify.open(self.warehouse, catalog=self.catalog)

    def place_options(self) -> tuple[str, ...]:
        """The options that name the place, for a program of the same; none where its variables and defaults do."""
        given = (("--warehouse", self.warehouse), ("--catalog", self.catalog))
        return tuple(word for option, value in given if value is not None for word in (option, value))

    def check_direct(self, what: str) -> None:
        """Raises `RefusedError` if a gateway is named: `what` needs the warehouse itself."""
        if url := self.gateway_url():
            raise through_gateway.refusal(what, url)

    def open_topic(self, name: str) -> tuple[Topic, int | None]:
        """A topic, and the partition if its name has one (`…-partition-3`). Raises `UnknownTopicError`."""
        reference = parse_topic(name)
        self.place = {"topic": reference.original, "partition": reference.partition}
        topic = self.open_lake().topic(name)
        if reference.partition is not None and reference.partition not in topic.state().partitions:
            raise RefusedError(f"{reference.original} has no partition {reference.partition}")
        return topic, reference.partition

    def open_whole_topic(self, name: str) -> Topic:
        """A topic, for verbs without a partition. Raises `RefusedError` if the name has one."""
        topic, partition = self.open_topic(name)
        if partition is not None:
            whole = parse_topic(name).original
            raise RefusedError(f"{name} is a partition", hint=f"this verb needs the whole topic: {whole}")
        return topic

    def note(self, event: str, text: str, **more: Any) -> None:
        """Says on stderr what happens meanwhile: for people, or as a JSON object with the same text."""
        if self.json:
            say_json({"event": event, "text": text, **more})
        else:
            say(text)

    def say_error(self, text: str, code: str | None, **where: Any) -> None:
        """Prints an error of a part of the work, such as one log; as JSON if that is the form of the output."""
        self.say_failure(text, "", code, 1, **where)

    def say_failure(self, message: str, hint: str, code: str | None, exit_code: int, **where: Any) -> None:
        """Prints an error on one line of stderr: for people, or as a JSON object.

        Errors of click and of libraries get the same bound as Lithify's.
        """
        message, hint = error_text(message), error_text(hint)
        if self.json:
            place = {name: value for name, value in {**self.place, **where}.items() if value is not None}
            error = {"code": code, "message": message, "hint": hint or None, "exit_code": exit_code}
            print_json({**error, **place}, err=True)
        else:
            say_error(message + (f" ({hint})" if hint else ""), code)

    def say_ending(self) -> None:
        """Prints that an interrupted verb takes a while to end, if it prints afterwards what is true then."""
        if self.standing:
            self.note("ending", "interrupted: ending, within 10 s")

    def say_interrupted(self) -> None:
        """Prints, once, what is true after an interrupt: for people, or as an error's JSON object."""
        standing, self.standing = self.standing, ""
        if standing and self.json:
            self.say_failure(f"interrupted: {standing}", "", "Interrupted", INTERRUPTED)
        elif standing:
            say(f"interrupted: {standing}")

    def printed(self, *results: Result) -> bool:
        """Prints the results as JSON, an object a line, if that is the form of the output; returns whether it is."""
        for result in results if self.json else ():
            print_json(result.to_json())
        return self.json

    def tell(self, result: Result, text: str, *, endless: bool) -> None:
        """Prints what work does as it proceeds: as JSON, or its text on stderr if there is one.

        Raises `OSError` if the work is `endless` and its output has no reader: it ends, for its supervisor to start
        it again.
        """
        if not self.printed(result) and text:
            say(text)
        if endless:
            flush(err=not self.json)


def the_partition(topic_name: str, named: int | None, given: int | None) -> int | None:
    """The partition that a name with one (`…-partition-3`) and `--partition` agree on; None without either."""
    if named is not None and given not in (None, named):
        raise RefusedError(f"{topic_name} is partition {named}, but --partition is {given}")
    return given if named is None else named


def one_partition(topic: Topic, topic_name: str, named: int | None, given: int | None) -> int:
    """The same, for verbs that cut one log; for a topic with one partition it is 0 by default."""
    partition = the_partition(topic_name, named, given)
    if partition is None and (partitions := len(topic.state().partitions)) == 1:
        return 0
    if partition is None:
        raise RefusedError(f"{topic_name} has {partitions} partitions", hint="choose one with --partition")
    return partition


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    is_blank = isinstance(value, str) and not value.strip()
    if is_blank:  # as of `--warehouse "$PLACE"`: what is at the default place would be changed
        raise click.BadParameter("it is empty; omit the option to use its default", ctx, param)
    if value and param.name:
        invocation = ctx.ensure_object(Invocation)
        if param.name == "gateway":
            invocation.gateway.url = value
        elif param.name.startswith("gateway_"):
            setattr(invocation.gateway, param.name.removeprefix("gateway_"), value)
        else:
            setattr(invocation, param.name, value)


def shared_options(*, all_shown: bool = False) -> list[click.Parameter]:
    """The flags that every verb and every noun takes; help of the program itself shows them all."""

    def option(*names: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=_remember, **more)

    return [
        option("--json", is_flag=True, help="Print JSON: one object, or one object per line for lists and records."),
        option(
            "--warehouse",
            metavar="DIR",
            shell_complete=names.directories,
            help="Local directory of the warehouse. Default: $LITHIFY_WAREHOUSE, or ./lithify-warehouse.",
        ),
        option(
            "--catalog",
            metavar="NAME",
            help="Catalog from PyIceberg's configuration, required for s3://. Default: $LITHIFY_CATALOG.",
        ),
        *through_gateway.options(option, shown=all_shown),
        option("--debug", is_flag=True, help="Print the traceback of a failure as well."),
    ]


class _ToThePerson(logging.Handler):
    """Prints log messages of libraries on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        say_lines(self.format(record))


class Verb(click.Command):
    """A verb: a command with the shared flags."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += shared_options()

    def invoke(self, ctx: click.Context) -> Any:
        """Runs it. Raises `RefusedError` if it needs the warehouse itself, but a gateway is named."""
        if url := ctx.ensure_object(Invocation).gateway_url():
            through_gateway.check_verb(ctx, url)
        return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Says what Kafka's options are here, and names a word such as `-path` as a whole, for click the options -p, -a
        and so on.
        """
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from lithify.cli.foreign_options import option_counterpart

            own = [name for param in self.params for name in param.opts if name.startswith(error.option_name)]
            if (meant := option_counterpart(error.option_name)) and not own:
                raise click.UsageError(f"No such option '{error.option_name}': {meant}", ctx) from error
            words = (word for word in given if word.startswith(error.option_name) and word[1:].isalpha())
            word = next(words, error.option_name)
            if word == error.option_name:
                raise
            why = "options begin with two dashes; names of streams and topics are arguments without an option"
            raise click.UsageError(f"No such option '{word}': {why}", ctx) from error


def verb(name: str) -> Callable[[F], Verb]:
    """Makes a function a verb; it gets the `Invocation` first. Its docstring is the help."""

    def decorate(function: F) -> Verb:
        command: Verb = click.command(name, cls=Verb)(click.make_pass_decorator(Invocation, ensure=True)(function))
        return command

    return decorate
