"""The program `lithify`: its verbs, its exit codes, and the one place that turns errors into text.

    0  done                         2  wrong usage or refused input
    1  failed                       3  finished, with findings        130  interrupted

Verbs import heavy libraries only when they run, so that `--help` is fast.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Mapping, Sequence

import click

import lithify
from lithify.cli.cleaner.quarantine import list_quarantine, release
from lithify.cli.cleaner.run import run as cleaner_run
from lithify.cli.cleaner.status import status
from lithify.cli.cleaner.throttle import throttle
from lithify.cli.completing.shells import complete_if_asked
from lithify.cli.completion import completion
from lithify.cli.cuts.delete_records import delete_records
from lithify.cli.cuts.repair import repair
from lithify.cli.cuts.retain import retain
from lithify.cli.cuts.sweep import sweep
from lithify.cli.cuts.truncate import truncate
from lithify.cli.doctor.doctor import doctor
from lithify.cli.groups.delete import delete as delete_group
from lithify.cli.groups.describe import describe
from lithify.cli.groups.list import list_groups
from lithify.cli.groups.reset import reset
from lithify.cli.invocation import INTERRUPTED, Invocation, Nouns, Subjects
from lithify.cli.kafka.hydrate import hydrate as hydrate_from_kafka
from lithify.cli.kafka.ingest import ingest
from lithify.cli.kafka.promote import promote as promote_kafka
from lithify.cli.kafka.publish import publish
from lithify.cli.pulsar.compact import compact as compact_live
from lithify.cli.pulsar.ingest import ingest as ingest_pulsar
from lithify.cli.pulsar.leftovers import leftovers
from lithify.cli.pulsar.uncompact import uncompact as uncompact_live
from lithify.cli.records.consume import consume, table
from lithify.cli.records.hydrate import hydrate
from lithify.cli.records.produce import produce
from lithify.cli.replicas.noun import REPLICA_VERBS, replica_group
from lithify.cli.rounds.compact import compact
from lithify.cli.rounds.demo import demo
from lithify.cli.rounds.history import history
from lithify.cli.rounds.undo import undo
from lithify.cli.rounds.verify import verify
from lithify.cli.rounds.versions import versions
from lithify.cli.streams.create import create as create_stream
from lithify.cli.streams.delete import delete as delete_stream
from lithify.cli.streams.edit import edit as edit_stream
from lithify.cli.streams.info import info as stream_info
from lithify.cli.streams.list import list_streams
from lithify.cli.terminal.output import flush, put, say_lines, show
from lithify.cli.terminal.stopping import end_in_time, leave
from lithify.cli.topics.alter import alter
from lithify.cli.topics.create import create
from lithify.cli.topics.delete import delete
from lithify.cli.topics.info import info
from lithify.cli.topics.list import list_topics
from lithify.cli.topics.uncompact import uncompact
from lithify.cli.warehouse.info import info as warehouse_info
from lithify.cli.warehouse.upgrade import upgrade as upgrade_warehouse
from lithify.defects import OF_THE_MACHINE
from lithify.errors import DefectError, LithifyError, UnusableEnvironmentError

_STDIN, _STDOUT, _STDERR = range(3)


@click.group("lithify", cls=Subjects, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lithify.__version__, message="%(prog)s %(version)s")
def lithify_group() -> None:
    """Log compaction for keyed topics in a data lake, on Spark.

    A topic keeps records with keys; compaction keeps the latest of every key, and offsets stay.

    \b
    See it work:      lithify demo
    Start a topic:    lithify topic create orders --partitions 4
    Put records in:   lithify produce orders orders.jsonl
    Compact it:       lithify compact orders
    Read it back:     lithify consume orders
    """


@click.group("topic", cls=Nouns)
def topic_group() -> None:
    """Create, list, show, change and delete topics.

    A topic is STREAM/TOPIC, or TOPIC alone in the stream "default". Names of Pulsar
    (persistent://tenant/namespace/topic) and of MapR (/path/stream:topic) are accepted as well.
    """


@click.group("stream", cls=Nouns)
def stream_group() -> None:
    """Create, list, show, change and delete streams.

    A stream is what topics are in, STREAM/TOPIC, and has attributes that they inherit: whether they are
    compacted, how long they keep records, how many partitions they get. Those of MapR are /path/stream.
    """


@click.group("warehouse", cls=Nouns)
def warehouse_group() -> None:
    """Show and upgrade what a warehouse can hold.

    A warehouse has a format. One that an earlier Lithify has made stays as it is until it is upgraded.
    """


@click.group("cleaner", cls=Nouns)
def cleaner_group() -> None:
    """Compact all topics continuously.

    A cleaner looks at every topic of a catalog and runs the rounds, retention and sweeps that are due.
    """


@click.group("quarantine", cls=Nouns)
def quarantine_group() -> None:
    """List and release logs whose rounds fail.

    A log that failed 8 times in a row is quarantined: cleaners skip it until it is released.
    """


@click.group("group", cls=Nouns)
def group_group() -> None:
    """List, show, move and delete the positions of consumer groups.

    A group continues where it has committed to; its members share the partitions of a topic:
    `lithify consume TOPIC --group GROUP`.
    """


@click.group("kafka", cls=Nouns)
def kafka_group() -> None:
    """Copy topics from a Kafka cluster, and back, and fill tables from both.

    A copy has Kafka's partitions and offsets.
    """


@click.group("pulsar", cls=Nouns)
def pulsar_group() -> None:
    """Work on topics of a live Pulsar cluster: copy them into the lake, compact them there.

    A round of compact on Spark replaces Pulsar's own compaction, which runs in a broker with all keys in its memory.
    """


NOUNS: Mapping[click.Group, tuple[click.Command, ...]] = {
    topic_group: (create, list_topics, info, alter, uncompact, delete),
    stream_group: (create_stream, edit_stream, stream_info, list_streams, delete_stream),
    group_group: (list_groups, describe, reset, delete_group),
    replica_group: REPLICA_VERBS,
    cleaner_group: (cleaner_run,),
    kafka_group: (ingest, publish, hydrate_from_kafka, promote_kafka),
    pulsar_group: (ingest_pulsar, compact_live, uncompact_live, leftovers),
    quarantine_group: (list_quarantine, release),
    warehouse_group: (warehouse_info, upgrade_warehouse),
}
SUBJECTS: Mapping[str, tuple[click.Command, ...]] = {
    "First steps": (demo, doctor, completion),
    "Topics and their places": (topic_group, stream_group, warehouse_group),
    "Records": (produce, consume, table, hydrate, group_group),
    "Compaction": (compact, status, history, verify, cleaner_group, throttle, quarantine_group),
    "Deletes and versions": (retain, delete_records, truncate, versions, undo, sweep, repair),
    "Other systems and places": (kafka_group, pulsar_group, replica_group),
}
"""Every verb, as the help of the program lists them."""

for noun, verbs in NOUNS.items():
    for command in verbs:
        noun.add_command(command)
for subject, verbs in SUBJECTS.items():
    lithify_group.add_subject(subject, verbs)


_PRINTING = frozenset(function.__code__ for function in (click.echo, put, flush))
_LIBRARIES = logging.NullHandler()
USAGE = "Usage"
"""The code of wrong usage, which is found before a verb runs."""


def main() -> None:
    """The entry point of the program."""
    _open_closed_streams()
    invocation = Invocation()
    if complete_if_asked(lithify_group, invocation):
        leave(0)
    end_in_time(invocation.say_ending, invocation.say_interrupted)
    leave(run(sys.argv[1:], invocation))


def _open_closed_streams() -> None:
    """Opens standard streams that the parent has closed: stdin reads as empty, and output is discarded.

    Else the next file that is opened, a segment or the catalog, would get the number of a closed stream, and
    output of a library or of Spark's process would be written into it.
    """
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(_STDOUT, "w")
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w")


def run(arguments: Sequence[str], invocation: Invocation | None = None) -> int:
    """Runs one command line and returns its exit code."""
    invocation = invocation or Invocation()
    # Log messages of libraries are hidden, as users get one line (py4j would print tracebacks of an
    # interrupt). `--debug` shows them.
    logging.getLogger().addHandler(_LIBRARIES)
    try:
        code = _invoked(arguments, invocation)
        flush()
        return code
    except (KeyboardInterrupt, click.Abort):
        invocation.say_interrupted()
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()  # the reader has closed the pipe, as `| head` does, which is no failure
        return 0
    except Exception as error:
        if invocation.debug:
            say_lines(traceback.format_exc())
        invocation.json = invocation.json or "--json" in arguments  # wrong usage may have ended the parsing before it
        return _failed(error, invocation)


def _invoked(arguments: Sequence[str], invocation: Invocation) -> int:
    try:
        with lithify_group.make_context("lithify", list(arguments), obj=invocation) as context:
            code = lithify_group.invoke(context)
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    return code if isinstance(code, int) else 0


def _failed(error: Exception, invocation: Invocation) -> int:
    """Prints the error on one line with its code and the next step; returns the exit code."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            show(error.format_message().splitlines())
            return 0
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else "lithify"
            kind, text, hint, code = USAGE, error.format_message(), f"see `{path} --help`", error.exit_code
        case LithifyError():
            kind, text, hint, code = error.code, error.message, error.hint, error.exit_code
        case OSError() if _is_of_printing(error):
            text = f"stdout: what is printed cannot be written: {error.strerror}"
            hint = "free space or print elsewhere; what the command has done is done"
            kind, code = UnusableEnvironmentError("").code, 1
            _discard_output()
        case _:  # a defect, or an unexpected failure of the machine
            kind = (UnusableEnvironmentError if isinstance(error, OF_THE_MACHINE) else DefectError)("").code
            text, hint, code = f"{type(error).__name__}: {error}", "`--debug` shows where", 1
    invocation.say_failure(text, hint, kind, code)
    return code


def _discard_output() -> None:
    """Redirects stdout to /dev/null: Python flushes it at exit and would print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_of_printing(error: OSError) -> bool:
    """Whether it was raised by writing to stdout, and not by what a verb did."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code in _PRINTING
