"""`lithify compact`: a round now, or the plan of one (C14, C30)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import PairType, TimeType, as_mapping
from lithify.cli.terminal.confirmation import allow_clock_jump, check_now
from lithify.cli.terminal.output import print_json, say, say_error, show
from lithify.cli.terminal.progress import phase_progress
from lithify.cli.text.rounds import plan_lines, plan_summary, round_lines, round_summary
from lithify.errors import RefusedError, RoundsFailedError

if TYPE_CHECKING:
    from lithify.api.topic import Topic
    from lithify.reports.round import RoundReport


@dataclass(frozen=True, slots=True)
class CompactFlags:
    """The flags of `compact`, as they were given."""

    only_plan: bool
    partitions: tuple[int, ...]
    read_rate: str | None
    write_rate: str | None
    task_memory: str
    now_ms: int | None
    yes: bool
    allow_clock_jump: bool
    spark_conf: tuple[tuple[str, str], ...]


@verb("compact")
@click.argument("topic_name", metavar="TOPIC")
@click.option("--plan", "only_plan", is_flag=True, help="Print what a round would do, without doing it.")
@click.option("--partition", "partitions", type=int, multiple=True, metavar="P", help="May be repeated. Default: all.")
@click.option("--read-rate", metavar="RATE", help="At most this much read per second, over all tasks: 50MB/s.")
@click.option("--write-rate", metavar="RATE", help="At most this much written per second, over all tasks.")
@click.option(
    "--task-memory",
    default="1GiB",
    show_default=True,
    metavar="SIZE",
    help="Memory of one task; more keys are processed in parts.",
)
@click.option("--now", "now_ms", type=TimeType(), help="The time for lags and expiry. Default: the clock.")
@click.option("--yes", is_flag=True, help="Needed where --now is later than the clock.")
@allow_clock_jump
@click.option("--spark-conf", type=PairType(), multiple=True, help="A setting of Spark; may be repeated.")
def compact(invocation: Invocation, topic_name: str, **given: Any) -> int:
    """Keep the latest record of every key: a round now.

    It runs at any dirty ratio, over each log from its start up to the horizon: the first
    segment that is too young for min.compaction.lag.ms, or the log end. Records keep their offsets; a
    tombstone stays for delete.retention.ms after the first round that covered it. Readers and
    producers need not stop. A second round without new records changes nothing.

    Exit code 1 if a log failed; the others are compacted, and a failed one is unchanged.

    \b
    Examples:
      lithify compact orders
      lithify compact orders --plan
      lithify compact orders --partition 0 --partition 3 --read-rate 50MB/s
      lithify compact orders --json | jq '.logs[].records_out'
    """
    flags = CompactFlags(**given)
    topic, named = invocation.open_topic(topic_name)
    partitions = _partitions(topic_name, named, flags.partitions)
    if flags.only_plan:
        _print_plan(invocation, topic, partitions, flags)
        return 0
    report = _run(topic, partitions, flags)
    if invocation.json:
        print_json(report.to_json())
    else:
        show(round_lines(report))
        say(round_summary(report))
    for log in report.failed:
        say_error(str(log.error))
    return 1 if report.failed else 0


def _run(topic: Topic, partitions: list[int] | None, flags: CompactFlags) -> RoundReport:
    check_now(flags.now_ms, flags.yes, "what a round drops", "--plan shows what it would do")
    try:
        with phase_progress() as progress:
            return topic.compact(
                now_ms=flags.now_ms,
                partitions=partitions,
                task_memory=flags.task_memory,
                read_rate=flags.read_rate,
                write_rate=flags.write_rate,
                spark_conf=as_mapping(flags.spark_conf, "--spark-conf"),
                progress=progress,
                allow_clock_jump=flags.allow_clock_jump,
            )
    except RoundsFailedError as error:
        report: RoundReport = error.report
        return report


def _partitions(topic_name: str, named: int | None, given: Sequence[int]) -> list[int] | None:
    if named is None:
        return sorted(set(given)) or None
    if set(given) - {named}:
        raise RefusedError(f"{topic_name} names partition {named}, --partition another")
    return [named]


def _print_plan(invocation: Invocation, topic: Topic, partitions: list[int] | None, flags: CompactFlags) -> None:
    plan = topic.plan(now_ms=flags.now_ms, partitions=partitions, task_memory=flags.task_memory)
    if invocation.json:
        print_json(plan.to_json())
        return
    show(plan_lines(plan))
    say(plan_summary(plan))
