"""`lithify produce`: appends records from files or stdin, batch by batch, each atomic (C1, C6)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import DurationType
from lithify.cli.records.encodings import encodings
from lithify.cli.records.record_files import (
    FORMATS,
    Format,
    TextForm,
    check_readable,
    format_of,
    most_line_bytes,
    read_batches,
)
from lithify.cli.records.text_lines import STDIN, LineLimits
from lithify.cli.terminal.drawing import columns
from lithify.cli.terminal.output import print_json, say, show
from lithify.cli.terminal.progress import record_progress
from lithify.cli.terminal.stopping import interrupts
from lithify.columnar.text.encodings import Encodings
from lithify.errors import InvalidInputError, InvalidRecordError, LithifyError, RefusedError, UnknownOutcomeError
from lithify.model.settings.units import plural
from lithify.reports.page.wording import count

if TYPE_CHECKING:
    from lithify.model.settings.topic_settings import TopicSettings
    from lithify.model.topic.state import TopicState


@dataclass(slots=True)
class Written:
    """The offset ranges committed so far, by partition; adjacent ranges are merged."""

    topic: str
    version: int
    invocation: Invocation
    ranges: dict[int, list[list[int]]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return sum(records for ranges in self.ranges.values() for _, _, records in ranges)

    def add(self, partition: int, start: int, end: int, records: int) -> None:
        ranges = self.ranges.setdefault(partition, [])
        if ranges and ranges[-1][1] == start:
            ranges[-1][1] = end
            ranges[-1][2] += records
        else:
            ranges.append([start, end, records])

    def say_if_interrupted(self, *, appending: bool = False) -> None:
        """Has the last line say how far it is, if Ctrl-C ends the program from now on."""
        far = f"{plural(self.records, 'record')} written, version {self.version}"
        after = "the next batch may have been written" if appending else "later lines were not written"
        self.invocation.standing = f"{self.topic}: {far}; {after}"

    def rows(self) -> list[tuple[int, int, int, int]]:
        return [(p, start, end, n) for p in sorted(self.ranges) for start, end, n in self.ranges[p]]

    def to_json(self) -> dict[str, Any]:
        names = ("partition", "start_offset", "end_offset", "records")
        return {
            "topic": self.topic,
            "version": self.version,
            "ranges": [dict(zip(names, row, strict=True)) for row in self.rows()],
            "records": self.records,
        }


@dataclass(frozen=True, slots=True)
class ProduceFlags:
    """The flags of `produce`, as they were given."""

    format_name: str | None
    encodings: Encodings
    key: str | None
    null_marker: str | None
    keep_offsets: bool
    linger_ms: int


@dataclass(frozen=True, slots=True)
class _Ways:
    """What appends batches, and what reads those that it takes: a topic and tables, or a gateway and what is sent."""

    target: Any
    read: Callable[[str, Format, TextForm, int | None], Iterator[Any]]
    now_ms: Callable[[], int]


@verb("produce")
@parameters.topic
@click.argument("files", metavar="[FILE]...", nargs=-1, shell_complete=names.files)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="Format of the input. Default: by the file's suffix, else json.",
)
@click.option("--key", metavar="KEY", help="Every line of the input is a value of this key.")
@encodings
@click.option("--null-marker", metavar="TEXT", help="With tsv: a record whose value is this text is a delete.")
@click.option("--keep-offsets", is_flag=True, help="Use the records' own partitions and offsets.")
@click.option(
    "--linger",
    "linger_ms",
    type=DurationType(),
    default="1s",
    show_default=True,
    help="Wait at most this long for more records of a pipe before appending a batch.",
)
def produce(invocation: Invocation, topic_name: str, files: tuple[str, ...], **given: Any) -> None:
    """Append records from files or stdin.

    Prints the offset ranges written.

    \b
    json     {"key":"k","value":"v"} on each line. May have: partition, timestamp
             (epoch ms), headers ([["name","value"],...]), offset. "value":null
             deletes the key.
    tsv      key TAB value on each line. A value that is the text of
             --null-marker deletes its key; a line without a tab is refused.
    parquet  columns key and value (binary or string); may have partition,
             timestamp, offset, headers. Copied column-wise, at bulk speed.

    Records are appended in atomic batches of 20,000 lines, or of a row group; from a pipe, after --linger
    at the latest. A refused record, or a malformed line, refuses its batch. The batches before it
    are committed, and the error gives the number of their records. A record without a timestamp gets
    the time at which it was read. Ctrl-C appends what was read whole, and ends.

    A record without a partition gets the one that Kafka's default partitioner chooses. With
    --keep-offsets, offsets must ascend and be at or above the log end offset; gaps are allowed. So a
    repeated run is refused instead of writing records twice.

    \b
    Examples:
      lithify produce orders orders.jsonl
      printf 'k1\\tv1\\nk2\\tv2\\n' | lithify produce orders --format tsv
      printf 'k1\\tNULL\\n' | lithify produce orders --format tsv --null-marker NULL
      lithify produce orders part-*.parquet
      lithify consume orders | lithify produce copy --keep-offsets
      tail -f changes.jsonl | lithify produce orders --linger 200ms
    """
    flags = ProduceFlags(**given)
    topic, partition = invocation.open_topic(topic_name)
    state = topic.load_or_create()
    _check_takes_records(state)
    sources = _sources(files, flags)
    ways = _ways(invocation, topic)
    form = _form(flags, state.settings, ways.now_ms)
    written = Written(topic.name, state.version, invocation)
    written.say_if_interrupted()
    try:
        _append_all(ways, partition, sources, form, written, keep_offsets=flags.keep_offsets)
    except LithifyError as error:
        _say_how_far(error, written)
        raise
    finally:
        _print(invocation, written)
    say(f"{written.topic}: {plural(written.records, 'record')} written, version {written.version}")


def _ways(invocation: Invocation, topic: Any) -> _Ways:
    if invocation.gateway_url() is None:
        return _Ways(topic, read_batches, topic.warehouse.clock.now_ms)
    from lithify.cli.records.sent_batches import now_ms, sent_batches

    return _Ways(topic.appender(), sent_batches, now_ms)


def _form(flags: ProduceFlags, settings: TopicSettings, now_ms: Callable[[], int]) -> TextForm:
    limits = LineLimits(most_line_bytes(settings.max_message_bytes), flags.linger_ms, now_ms)
    null_marker = None if flags.null_marker is None else os.fsencode(flags.null_marker)
    return TextForm(flags.encodings, flags.encodings.key_bytes(flags.key), null_marker, limits)


def _append_all(
    ways: _Ways,
    partition: int | None,
    sources: list[tuple[str, Format]],
    form: TextForm,
    written: Written,
    *,
    keep_offsets: bool,
) -> None:
    typed = any(path == STDIN for path, _ in sources) and sys.stdin is not None and sys.stdin.isatty()
    if typed:
        say("reading records from the terminal, one per line; Ctrl-D ends the input")
    with record_progress("appending", shown=not typed) as advance:  # a bar would be drawn into what is typed
        for path, kind in sources:
            for batch in ways.read(path, kind, form, partition):
                with interrupts(lambda text: written.invocation.note("interrupted", text)) as taken:
                    taken.wait("until this batch is appended")
                    written.say_if_interrupted(appending=True)
                    _append(ways, batch, written, keep_offsets=keep_offsets)
                    written.say_if_interrupted()
                advance(len(batch.numbers))


def _check_takes_records(state: TopicState) -> None:
    if state.settings.message_ids == "pulsar":
        raise RefusedError(
            f"{state.name}: message.ids=pulsar, but produced records have no message ids",
            hint="`lithify pulsar ingest` copies a topic of a Pulsar cluster; nothing was written",
        )


def _sources(files: tuple[str, ...], flags: ProduceFlags) -> list[tuple[str, Format]]:
    """The files and their formats, all of them checked before anything is written."""
    if flags.key is not None and flags.format_name is not None:
        raise RefusedError("--key reads each line as a value, --format as a record", hint="use only one of them")
    sources = [(path, _kind(path, flags)) for path in files or (STDIN,)]
    plain = any(kind in ("tsv", "values") for _, kind in sources)
    if flags.encodings != Encodings.of("utf-8") and all(kind == "parquet" for _, kind in sources):
        raise RefusedError("--encoding is for text, but Parquet files hold bytes", hint="omit it")
    if flags.null_marker is not None and not plain:
        raise RefusedError("--null-marker is for tsv", hint='in json write "value":null, in parquet use nulls')
    if flags.keep_offsets and plain:
        name = "tsv" if flags.key is None else "a line that is a value"
        raise RefusedError(f"{name} has no offsets to keep", hint="use json or parquet with --keep-offsets")
    for path, kind in sources:
        check_readable(path, kind)
    return sources


def _kind(path: str, flags: ProduceFlags) -> Format:
    flags.encodings.key_bytes(flags.key)  # raises before anything is written
    return format_of(path, flags.format_name) if flags.key is None else "values"


def _append(ways: _Ways, batch: Any, written: Written, *, keep_offsets: bool) -> None:
    try:
        result = batch.appended(ways.target, keep_offsets=keep_offsets)
    except (InvalidInputError, InvalidRecordError) as error:
        raise batch.named(error) from None
    written.version = result.version
    for r in result.ranges:
        written.add(r.partition, r.start_offset, r.end_offset, r.records)


def _say_how_far(error: LithifyError, written: Written) -> None:
    if isinstance(error, UnknownOutcomeError):
        far = f"its batch may have been written; {plural(written.records, 'record')} of earlier batches were"
    elif written.records:
        far = f"nothing of its batch was written; {plural(written.records, 'record')} of earlier batches were"
    else:
        far = "nothing was written"
    error.hint = f"{error.hint}; {far}" if error.hint else far


def _print(invocation: Invocation, written: Written) -> None:
    if invocation.json:
        print_json(written.to_json())
    elif written.records:
        rows = [(str(p), f"[{count(start)}, {count(end)})", count(n)) for p, start, end, n in written.rows()]
        show(columns(("PARTITION", "OFFSETS", "RECORDS"), rows))
