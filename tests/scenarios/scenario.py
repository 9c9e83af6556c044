"""Plays a scenario: a text of commands, each followed by what it printed.

    > create delete.retention.ms=1h    a new topic, at time 0; `partitions=2` for more than one log
    > append a=1 b=2 | a=∅             records as in `support.builders`; `|` begins another append
    > append 1: a=1                    to partition 1
    > keep a=1@7                       with offsets of their own
    > at 30m                           sets the clock
    > plan, compact, status, log       of every log; `compact --now 2h` judges as of that time
    > read 3, last                     partition 0 from offset 3 on; the position of its last record
    > lose 0                           the first data file goes missing

Lines that begin with `>` are commands, indented lines below are their output, all else is prose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lithify.compaction.reporting import plan_report
from lithify.errors import LithifyError
from lithify.model.log import LogState
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.units import format_duration, parse_duration_ms
from lithify.service.compact import RunRequest, plan_run
from lithify.service.status import topic_status
from support.builders import a_log, draw, draw_record
from support.memory_topic import MemoryTopic

OUTPUT = "    "


def play(text: str) -> str:
    """The scenario with the output of today below every command."""
    player = Player()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(OUTPUT):
            continue
        lines.append(line)
        if line.startswith("> "):
            lines += [f"{OUTPUT}{shown}".rstrip() for shown in player.run(line[2:])]
    return "\n".join(lines) + "\n"


class Player:
    """The topic of one scenario."""

    def __init__(self) -> None:
        self._topic = MemoryTopic(now_ms=0)

    def run(self, command: str) -> Iterator[str]:
        verb, _, rest = command.partition(" ")
        action: Callable[[str], Iterator[str]] = getattr(self, f"_{verb}")
        try:
            yield from action(rest)
        except LithifyError as error:
            yield f"{type(error).__name__}: {error}"

    def _create(self, config: str) -> Iterator[str]:
        given = dict(pair.split("=") for pair in config.split())
        partitions = int(given.pop("partitions", "1"))
        self._topic = MemoryTopic(
            partitions=partitions, now_ms=0, **{name.replace(".", "_"): value for name, value in given.items()}
        )
        yield from ()

    def _append(self, drawn: str) -> Iterator[str]:
        partition, colon, rest = drawn.partition(": ")
        place = int(partition) if colon else 0
        log = a_log(rest if colon else drawn, partition=place, timestamp=None)
        for records in log.contents:
            self._topic.append([replace(record, offset=None) for record in records])
        yield from ()

    def _keep(self, drawn: str) -> Iterator[str]:
        log = a_log(drawn, first_offset=self._topic.log().log_end_offset, timestamp=None)
        for records in log.contents:
            self._topic.append(records, keep_offsets=True)
        yield from ()

    def _at(self, time: str) -> Iterator[str]:
        self._topic.clock.set(parse_duration_ms(time))
        yield from ()

    def _lose(self, number: str) -> Iterator[str]:
        del self._topic.files.data[self._topic.segments()[int(number)].path]
        yield from ()

    def _plan(self, _: str) -> Iterator[str]:
        for plan in plan_run(self._topic.warehouse, self._topic.state, RunRequest()):
            report = plan_report(plan, 1)
            expiring = f", tombstones below {report.tombstones_expire_below} expire"
            held = next((_range(s) for s in self._segments() if s.path == report.horizon_held_by), None)
            yield (
                f"log {plan.partition}: D {report.first_dirty_offset} to H {report.horizon} "
                f"({report.horizon_limited_by}{f', held by {held}' if held else ''})"
                f"{expiring if report.tombstones_expire_below else ''}"
            )
            yield f"  looks at {_ranges(plan.scanned)}; passes over {_ranges(set(plan.sources) - set(plan.scanned))}"

    def _compact(self, flags: str) -> Iterator[str]:
        before = set(self._segments())
        now_ms = parse_duration_ms(flags.removeprefix("--now ")) if flags else None
        report = self._topic.compact(now_ms)
        for log in report.logs:
            if log.error is not None:
                yield f"log {log.partition}: failed: {log.error}"
                continue
            losers = [
                f"{count} {cause}"
                for cause, count in report.to_json()["logs"][log.partition]["losers"].items()
                if count
            ]
            yield (
                f"log {log.partition}: D {log.first_dirty_offset} to {log.first_dirty_offset_after}, "
                f"{log.records_in} records in, {log.records_out} out"
                f"{'' if not losers else ': ' + ', '.join(losers)}{'' if log.changed else '; nothing changed'}"
            )
        after = set(self._segments())
        if before != after:
            yield f"  {_ranges(before - after)} became {_ranges(after - before)}"

    def _log(self, _: str) -> Iterator[str]:
        for state in self._topic.state.logs:
            yield f"log {state.partition}: {draw(self._topic.contents(state.partition)) or '(no records)'}"
            yield f"  {_offsets(state)}{_steps(state)}"

    def _status(self, _: str) -> Iterator[str]:
        for log in topic_status(self._topic.warehouse, self._topic.state).logs:
            yield (
                f"log {log.partition}: {log.clean_bytes} bytes clean, {log.dirty_bytes} dirty, "
                f"ratio {log.dirty_ratio:.2f}, {log.tombstones} tombstones"
            )
            when = "" if log.due_at_ms is None else f"; by the clock at {format_duration(log.due_at_ms)}"
            yield f"  {'due' if log.due else 'not due'}: {_plain(log.due_reason)}{when}"

    def _read(self, start: str) -> Iterator[str]:
        given = int(start) if start.isdigit() else start
        records: list[Record] = list(self._topic.reader(start=given))
        yield " ".join(map(draw_record, records)) or "(nothing)"

    def _last(self, _: str) -> Iterator[str]:
        position = self._topic.reader().last_message_id()
        yield "none" if position is None else f"offset {position.offset}, at {format_duration(position.timestamp_ms)}"

    def _segments(self) -> tuple[Segment, ...]:
        return self._topic.warehouse.store.segments(self._topic.state)


def _range(segment: Segment) -> str:
    return f"[{segment.base_offset},{segment.end_offset})"


def _ranges(segments: object) -> str:
    ordered = sorted(segments, key=lambda s: (s.partition, s.base_offset))  # type: ignore[call-overload]
    return " ".join(map(_range, ordered)) or "nothing"


def _offsets(state: LogState) -> str:
    return f"S {state.log_start_offset}, D {state.first_dirty_offset}, E {state.log_end_offset}"


def _steps(state: LogState) -> str:
    steps = [f"{s.tombstones} below {s.end_offset} since {format_duration(s.time_ms)}" for s in state.steps]
    return f"; tombstones: {', '.join(steps)}" if state.tombstones else ""


def _plain(reason: str) -> str:
    """Without the date, which would be one of 1970."""
    return reason.partition(", since 1970")[0]
