"""`lithify status`: the state of every log, and whether it is due for a round (C21, C27, C28, C31)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import DurationType, TimeType
from lithify.cli.terminal.drawing import drawn, heading, results, texts, wrapped
from lithify.cli.terminal.output import print_json, say, show
from lithify.cli.terminal.watch import Frame, watch
from lithify.reports.overview import CatalogOverview, Standing, standings
from lithify.reports.page import Outlet
from lithify.reports.page.wording import count
from lithify.reports.status import TopicStatus
from lithify.reports.topic_space import space_line
from lithify.reports.topics import no_topics

if TYPE_CHECKING:
    from lithify.api.lake import Lake
    from lithify.api.topic import Topic

INTERVAL_MS = 2_000
SHOWN = 50
"""Topics shown without `--all`."""


@verb("status")
@parameters.any_topic
@click.option("--now", "now_ms", type=TimeType(), help="Judge lags and expiry as of this time. Default: the clock.")
@click.option("--all", "everything", is_flag=True, help="Print all topics instead of the worst 50.")
@click.option("--watch", "watches", is_flag=True, help="Repeat until Ctrl-C.")
@click.option("--interval", "interval_ms", type=DurationType(), help="Time between two refreshes.  [default: 2s]")
def status(
    invocation: Invocation,
    topic_name: str | None,
    now_ms: int | None,
    everything: bool,
    watches: bool,
    interval_ms: int | None,
) -> int:
    """Show the state of every log and whether it is due.

    Without TOPIC it shows a line per topic with the state of its worst log, the worst first:
    unreadable, quarantined, overdue (past max.compaction.lag.ms), failing, due, waiting, clean.
    DIRTY belongs to that log; bytes above the horizon count as dirty unless it is due. Below the topics it
    shows the rates that `throttle` has set for cleaners. It also shows when each cleaner of the catalog last completed
    a check, if their leases are in the catalog's database or in that at $LITHIFY_COORDINATION_URL.

    For one topic it shows every log. START is the log start offset and END the log end offset. Rounds
    have compacted the records below CLEAN BELOW; the next one compacts those below HORIZON. DIRTY is the
    share of bytes that no round has compacted. RECORDS and SIZE of a side-by-side topic count the
    backlog, and a line below shows the compacted view. A topic with cleanup.policy=delete has no
    rounds. A log of several parts is also drawn as a line, if it fits: S, D, H and E are START,
    CLEAN BELOW, HORIZON and END, and deletes below R may be gone. If more is stored than SIZE, such
    as earlier versions, a line shows how much. Reads metadata only.

    \b
    Examples:
      lithify status
      lithify status --watch --interval 5s
      lithify status --json | jq -r 'select(.state == "overdue") | .topic'
      lithify status orders --json | jq '.logs[] | select(.due)'
      lithify status orders --now 2026-02-01
    """
    if interval_ms is not None and not watches:
        raise click.UsageError("--interval requires --watch")
    if everything and topic_name is not None:
        raise click.UsageError("--all cannot be combined with a topic")
    if topic_name is None:
        look = _overview_look(invocation, now_ms, everything=everything)
    else:
        topic, only = invocation.open_topic(topic_name)
        if watches:
            topic.state()  # a topic that does not exist ends it before the first look
        look = _topic_look(topic, only, now_ms)
    if watches:
        watch(look, interval_ms or INTERVAL_MS, as_json=invocation.json)
    frame = look()
    _print(frame, as_json=invocation.json)
    return frame.code


def _print(frame: Frame, *, as_json: bool) -> None:
    if as_json:
        for value in frame.values:
            print_json(value)
        return
    if frame.lines:
        show(frame.lines)
    for note in frame.notes:
        say(note)


def _overview_look(invocation: Invocation, now_ms: int | None, *, everything: bool) -> Callable[[], Frame]:
    lake = invocation.open_lake()
    lake.check_is_there()
    watched = lake.watch()

    def look() -> Frame:
        overview = watched.overview(now_ms=now_ms)
        return Frame(
            lines=_overview_lines(overview, everything=everything),
            notes=_overview_notes(overview, lake, everything=everything),
            whole=overview.to_json(),
            values=[
                *(topic.to_json() for topic in overview.topics),
                *map(asdict, overview.cleaners or ()),
                *([] if overview.cleaner_rates is None else [overview.cleaner_rates.to_json()]),
            ],
            code=1 if Standing.UNREADABLE in overview.counts() else 0,
        )

    return look


def _topic_look(topic: Topic, only: int | None, now_ms: int | None) -> Callable[[], Frame]:
    def look() -> Frame:
        topic_status = topic.status(now_ms=now_ms)
        if only is not None:
            topic_status = replace(topic_status, logs=tuple(log for log in topic_status.logs if log.partition == only))
        return Frame(_status_lines(topic_status), [], topic_status.to_json(), [topic_status.to_json()])

    return look


def _overview_lines(overview: CatalogOverview, *, everything: bool) -> list[str]:
    """A line per topic; nothing if there is none."""
    return results((overview if everything else replace(overview, topics=overview.topics[:SHOWN])).page())


def _overview_notes(overview: CatalogOverview, lake: Lake, *, everything: bool) -> list[str]:
    """The number of topics not shown, the number in each state, and the cleaners."""
    notes = texts(overview.page(), Outlet.NOTICE)
    if not overview.topics:
        return [no_topics(lake.where), *notes]
    hidden = () if everything else overview.topics[SHOWN:]
    if not hidden:
        return notes
    left = standings(CatalogOverview(hidden, overview.now_ms).counts())
    return [f"and {count(len(hidden))} more: {left} (`--all` shows them)", *notes]


def _status_lines(topic_status: TopicStatus) -> list[str]:
    """What is said of the whole topic above its logs, of which there may be many."""
    page = topic_status.page()
    summary = [*wrapped(space_line(topic_status.space)), *texts(page, Outlet.RESULT)]
    return [f"{heading(page.of)}  {page.title}", *summary, *drawn(page.table)]
