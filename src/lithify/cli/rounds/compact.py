"""`lithify compact`: a round now, or the plan of one (C14, C30)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.interruption import Work, interruptible
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import TimeType
from lithify.cli.terminal.confirmation import allow_clock_jump, check_now
from lithify.cli.terminal.output import print_page, say
from lithify.cli.terminal.progress import phase_progress
from lithify.errors import RefusedError, RoundsFailedError
from lithify.ports.engine import unsaid
from lithify.reports.topic_space import space_line

if TYPE_CHECKING:
    from lithify.api.profiles import RoundProfile
    from lithify.api.topic import Topic
    from lithify.reports.rounds.plan import PlanReport
    from lithify.reports.rounds.round import RoundReport


@verb("compact")
@parameters.topic
@click.option("--plan", "only_plan", is_flag=True, help="Print what a round would do, and change nothing.")
@click.option(
    "--partition",
    "partitions",
    type=int,
    multiple=True,
    metavar="P",
    help="Compact only this partition. Repeatable. Default: all.",
)
@parameters.rates("tasks")
@parameters.task_memory
@click.option(
    "--partial-progress",
    metavar="SIZE",
    help="Commit after at most SIZE of new segments, release what they replace, and continue: for a log that does not"
    " fit on the disk twice.",
)
@click.option("--now", "now_ms", type=TimeType(), help="Judge lags and expiry as of this time. Default: the clock.")
@click.option(
    "--profile",
    "profile_dir",
    type=click.Path(),
    metavar="DIR",
    help="Write times and counters of phases and tasks to this new or empty folder.",
)
@click.option("--yes", is_flag=True, help="Confirm a --now that is later than the clock.")
@allow_clock_jump
@parameters.spark_conf
def compact(  # noqa: PLR0913, PLR0917 - the flags of the verb, by name
    invocation: Invocation,
    topic_name: str,
    only_plan: bool,
    partitions: tuple[int, ...],
    now_ms: int | None,
    profile_dir: str | None,
    yes: bool,
    **limits: Any,
) -> int:
    """Keep the latest record of every key: a round now.

    It runs at any dirty ratio, over each log from its start up to the horizon: the first
    segment that is too young for min.compaction.lag.ms, or the log end. Records keep their offsets; a
    tombstone remains for delete.retention.ms after the first round that covered it. Readers and
    producers need not stop. A second round without new records changes nothing.

    Exit code 1 if a log failed; the others are compacted, and a failed one is unchanged.

    \b
    Examples:
      lithify compact orders
      lithify compact orders --plan
      lithify compact orders --partition 0 --partition 3 --read-rate 50MB/s
      lithify compact orders --partial-progress 2GiB
      lithify compact orders --profile ./profile
      lithify compact orders --json | jq '.logs[].records_out'
    """
    if only_plan and profile_dir is not None:
        raise RefusedError("--plan runs no round, so --profile has nothing to record", hint="use only one of them")
    if profile_dir is not None:
        invocation.check_direct("--profile")
    topic, named = invocation.open_topic(topic_name)
    chosen = _partitions(topic_name, named, partitions)
    if only_plan:
        of_plan = {name: limits[name] for name in ("task_memory", "partial_progress")}
        _print(invocation, topic.plan(now_ms=now_ms, partitions=chosen, **of_plan))
        return 0
    check_now(now_ms, yes, "what a round removes", "--plan shows what it would do")
    look, before = f"`lithify history {topic.name}`", "the logs of {} are unchanged"
    with (
        _profiled(invocation, profile_dir) as profile,
        interruptible(invocation, topic.name, look=look, before=before) as work,
    ):
        report = _run(invocation, topic, work, now_ms=now_ms, partitions=chosen, profile=profile, **limits)
        work.ended(report.version, changed=report.changed)
        if _print(invocation, report) and (stored := space_line(report.space)):
            say(f"{report.topic}: {stored}")
        _say_failed(invocation, report)
    return 1 if report.failed else 0


def _print(invocation: Invocation, report: PlanReport | RoundReport) -> bool:
    """Prints a report. Whether the output was for people, and not for a script."""
    for_people = not invocation.printed(report)
    if for_people:
        print_page(report.page())
    return for_people


def _say_failed(invocation: Invocation, report: RoundReport) -> None:
    """Says to people once what several logs failed of; in JSON each log has its error."""
    errors: set[str | None] = set()
    for log in report.failed:
        if invocation.json or log.error not in errors:
            invocation.say_error(str(log.error), log.error_code, partition=log.partition)
        errors.add(log.error)


def _run(invocation: Invocation, topic: Topic, work: Work, **given: Any) -> RoundReport:
    notes = unsaid if invocation.json else say
    try:
        with phase_progress(invocation.note) as progress:
            return topic.compact(progress=work.watched(progress), notes=notes, **given)
    except RoundsFailedError as error:
        report: RoundReport = error.report
        return report


@contextmanager
def _profiled(invocation: Invocation, folder: str | None) -> Iterator[RoundProfile | None]:
    """A profile of the round, saved when it has ended or failed; that it cannot be saved does not fail the round."""
    if folder is None:
        yield None
        return
    from lithify.api.profiles import TRACE, RoundProfile, profile_folder

    path, profile = profile_folder(folder), RoundProfile()
    try:
        yield profile
    finally:
        try:
            profile.save(path)
        except OSError as error:
            invocation.note("profile", f"{path}: the profile cannot be written: {error.strerror}")
        else:
            kept = f"{len(profile.tasks)} of {len(profile.tasks) + profile.left_out} tasks"
            text = f"{path}: the profile has {kept}; open {TRACE} in a trace viewer such as Perfetto"
            invocation.note("profile", text)


def _partitions(topic_name: str, named: int | None, given: Sequence[int]) -> list[int] | None:
    if named is None:
        return sorted(set(given)) or None
    if set(given) - {named}:
        raise RefusedError(f"{topic_name} is partition {named}, but --partition is another one")
    return [named]
