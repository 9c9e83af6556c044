"""Plays a scenario: a text of commands, each followed by what it printed.

    > create delete.retention.ms=1h    a new topic, at time 0; `partitions=2` for more than one log
    > append a=1 b=2 | a=∅             records as in `support.builders`; `|` begins another append
    > append 1: a=1                    to partition 1
    > keep a=1@7                       with offsets of their own; `keep 1: a=1@7`
    > end 9                            the log ends there, beyond its last record; `end 1: 9`
    > at 30m                           sets the clock
    > plan, compact, status, log       of every log; `compact --now 2h --partition 1`
    > meanwhile append a=2             another program does that during the next round, before its commit;
                                       `meanwhile, early: append a=2` after its plan, before it reads
    > meanwhile, call 3: append a=2    another program does that while the next command is paused right
                                       before its third call to the store, files or engine
    > read 3, last, table              partition 0 from offset 3 on; the position of its last record;
                                       `read --compacted 3` and `last --compacted` of compacted data
    > retain, versions, undo, sweep    `retain --now 2h`, `sweep --yes`
    > expire                           expires kept versions whose time is over; `expire --now 2h`
    > delete-records 3, truncate 3     of partition 0; `truncate 1: --below-compacted 3` of partition 1
    > alter null.key=drop              also `--unset null.key` and `--partitions 2`
    > position g 3                     the group `g` has read partition 0 up to offset 3; `position 1: g 3`
    > forget-groups                    the database of groups cannot be read from now on
    > trust-clock                      a user confirms that the clock is right
    > uncompact                        also `--lose-trimmed`
    > make-again                       the topic is deleted and recreated
    > lose 0, lose view 0              the first data file goes missing, of the log or of its view

Lines that begin with `>` are commands, indented lines below are their output, all else is prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from lithify.errors import LithifyError
from lithify.errors.words import of_the_command_line
from lithify.model.segment import Segment
from lithify.model.settings.units import format_duration, parse_duration_ms
from lithify.ports.groups import NoGroups
from lithify.rules.compaction.round_report import plan_report
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.clock_check import trust_clock
from lithify.service.group_reads import read_groups
from lithify.service.look.status import topic_status
from lithify.service.read.fetch import table_batches
from lithify.service.round.topic_run import plan_rounds
from lithify.service.write.append import append
from scenarios.shown import cut_lines, file_name, log_lines, ranges, round_line, segment_range, status_lines
from support.builders import a_log, draw_record, with_id
from support.faults.ports import FaultyEngine, Freezer, faulty
from support.topics.memory_topic import ORDERS, MemoryTopic

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
        self._others: list[str] = []
        self._early = False
        self._standstill = 0
        """The call before which the next command is paused, or 0."""

    def run(self, command: str) -> Iterator[str]:
        verb, _, rest = command.partition(" ")
        action: Callable[[str], Iterator[str]] = getattr(self, f"_{verb.rstrip(',').replace('-', '_')}")
        printed: list[str] = []
        try:
            with self._paused(printed) if verb != "meanwhile," else nullcontext():
                lines = list(action(rest))
        except LithifyError as error:
            with of_the_command_line():
                lines = [f"{type(error).__name__}: {error}"]
        yield from (f"meanwhile: {line}" for line in printed)
        yield from lines

    @contextmanager
    def _paused(self, printed: list[str]) -> Iterator[None]:
        """Installs a freezer that pauses at the given call, once."""
        at, topic, self._standstill = self._standstill, self._topic, 0
        if not at:
            yield
            return
        warehouse, engine, others, self._others = topic.warehouse, topic.engine, self._others, []

        def happens() -> None:
            topic.warehouse, topic.engine = warehouse, engine
            printed.extend(line for command in others for line in self.run(command))

        freezer = Freezer(at, happens)
        topic.warehouse, topic.engine = faulty(warehouse, freezer), FaultyEngine(engine, freezer)
        try:
            yield
        finally:
            topic.warehouse, topic.engine = warehouse, engine

    def _create(self, config: str) -> Iterator[str]:
        given = dict(pair.split("=") for pair in config.split())
        partitions = int(given.pop("partitions", "1"))
        self._topic = MemoryTopic(
            partitions=partitions, now_ms=0, **{name.replace(".", "_"): value for name, value in given.items()}
        )
        yield from ()

    def _make_again(self, _: str) -> Iterator[str]:
        self._topic.make_again()
        yield from ()

    def _append(self, drawn: str) -> Iterator[str]:
        place, rest = _placed(drawn)
        state = self._topic.state
        has_ids, end = state.settings.message_ids == "pulsar", state.log(place).log_end_offset
        for records in a_log(rest, partition=place, first_offset=end, timestamp=None).contents:
            given = map(with_id, records) if has_ids else records
            self._topic.append([record._replace(offset=None) for record in given])
        yield from ()

    def _keep(self, drawn: str) -> Iterator[str]:
        place, rest = _placed(drawn)
        end = self._topic.log(place).log_end_offset
        for records in a_log(rest, partition=place, first_offset=end, timestamp=None).contents:
            self._topic.append(records, keep_offsets=True)
        yield from ()

    def _end(self, drawn: str) -> Iterator[str]:
        place, rest = _placed(drawn)
        append(self._topic.warehouse, ORDERS, [], keep_offsets=True, end_offsets={place: int(rest)})
        yield from ()

    def _at(self, time: str) -> Iterator[str]:
        self._topic.clock.set(parse_duration_ms(time))
        yield from ()

    def _lose(self, what: str) -> Iterator[str]:
        segments = self._topic.view() if what.startswith("view ") else self._topic.segments()
        del self._topic.files.data[segments[int(what.rsplit(maxsplit=1)[-1])].path]
        yield from ()

    def _meanwhile(self, what: str) -> Iterator[str]:
        others = re.fullmatch(r"(?:(early): |call (\d+): )?(.*)", what)
        assert others is not None
        self._early, self._standstill = bool(others[1]), int(others[2] or 0)
        self._others.append(others[3])
        yield from ()

    def _plan(self, _: str) -> Iterator[str]:
        state, warehouse = self._topic.state, self._topic.warehouse
        reads = read_groups(warehouse, state)
        for plan in plan_rounds(warehouse, state, None, self._topic.clock.now_ms(), reads):
            report = plan_report(plan, 1)
            expiring = f", tombstones below {report.tombstones_expire_below} expire"
            held = next((segment_range(s) for s in self._segments() if s.path == report.horizon_held_by), None)
            yield (
                f"log {plan.partition}: D {report.first_dirty_offset} to H {report.horizon} "
                f"({report.horizon_limited_by}{f', held by {held}' if held else ''})"
                f"{expiring if report.tombstones_expire_below else ''}"
            )
            yield f"  looks at {ranges(plan.scanned)}; passes over {ranges(set(plan.sources) - set(plan.scanned))}"
            if plan.gone or plan.above_horizon:
                yield f"  {ranges(plan.gone)} goes whole; {ranges(plan.above_horizon)} waits and is asked"

    def _compact(self, flags: str) -> Iterator[str]:
        before, view_before = set(self._segments()), set(self._views())
        printed: list[str] = []
        others, self._others = self._others, []
        given = dict(zip(*[iter(flags.split())] * 2, strict=True))
        report = self._topic.compact(
            parse_duration_ms(given["--now"]) if "--now" in given else None,
            (int(given["--partition"]),) if "--partition" in given else None,
            meanwhile=lambda: printed.extend(line for command in others for line in self.run(command)),
            times=1,
            early=self._early,
        )
        yield from (f"meanwhile: {line}" for line in printed)
        for log in report.logs:
            yield round_line(log)
        if report.groups_error is not None:
            yield f"  {report.groups_error}"
        after, view_after = set(self._segments()), set(self._views())
        if before != after:
            yield f"  {ranges(before - after)} became {ranges(after - before)}"
        if view_before != view_after:
            yield f"  of the view {ranges(view_before - view_after)} became {ranges(view_after - view_before)}"

    def _log(self, _: str) -> Iterator[str]:
        for state in self._topic.state.logs:
            view = None if state.view is None else self._topic.contents(state.partition, view=True)
            yield from log_lines(state, self._topic.contents(state.partition), view)

    def _status(self, _: str) -> Iterator[str]:
        for log in topic_status(self._topic.warehouse, self._topic.state).logs:
            yield from status_lines(log)

    def _read(self, what: str) -> Iterator[str]:
        compacted, start = "--compacted" in what, what.replace("--compacted", "").strip() or "earliest"
        given = int(start) if start.isdigit() else start
        yield " ".join(map(draw_record, self._topic.reader(start=given, compacted=compacted))) or "(nothing)"

    def _last(self, what: str) -> Iterator[str]:
        position = self._topic.reader(compacted="--compacted" in what).last_message_id()
        yield "none" if position is None else f"offset {position.offset}, at {format_duration(position.timestamp_ms)}"

    def _table(self, _: str) -> Iterator[str]:
        batches = table_batches(self._topic.warehouse, self._topic.state)
        yield " ".join(draw_record(record) for batch in batches for record in batch.records()) or "(nothing)"

    def _retain(self, flags: str) -> Iterator[str]:
        now_ms = parse_duration_ms(flags.removeprefix("--now ")) if flags else None
        yield from cut_lines(retain(self._topic.warehouse, ORDERS, now_ms=now_ms))

    def _delete_records(self, before: str) -> Iterator[str]:
        place, offset = _placed(before)
        yield from cut_lines(delete_records(self._topic.warehouse, ORDERS, place, int(offset)))

    def _truncate(self, what: str) -> Iterator[str]:
        place, rest = _placed(what)
        below, to = "--below-compacted" in rest, int(rest.rsplit(maxsplit=1)[-1])
        yield from cut_lines(truncate(self._topic.warehouse, ORDERS, place, to, below_compacted=below))

    def _uncompact(self, flags: str) -> Iterator[str]:
        yield from cut_lines(uncompact(self._topic.warehouse, ORDERS, lose_trimmed="--lose-trimmed" in flags))

    def _trust_clock(self, _: str) -> Iterator[str]:
        trust_clock(self._topic.warehouse, ORDERS)
        yield from ()

    def _position(self, what: str) -> Iterator[str]:
        place, rest = _placed(what)
        group, offset = rest.split()
        self._topic.group_reads(group, int(offset), place)
        yield from ()

    def _forget_groups(self, _: str) -> Iterator[str]:
        self._topic.warehouse = replace(self._topic.warehouse, groups=NoGroups())
        yield from ()

    def _undo(self, _: str) -> Iterator[str]:
        yield from cut_lines(undo(self._topic.warehouse, ORDERS))

    def _alter(self, what: str) -> Iterator[str]:
        config: dict[str, str] = {}
        unset: list[str] = []
        partitions = None
        words = iter(what.split())
        for word in words:
            match word:
                case "--unset":
                    unset.append(next(words))
                case "--partitions":
                    partitions = int(next(words))
                case _:
                    name, _, value = word.partition("=")
                    config[name] = value
        alter(self._topic.warehouse, ORDERS, config, unset_names=unset, partitions=partitions)
        yield from ()

    def _versions(self, _: str) -> Iterator[str]:
        kept = self._topic.warehouse.store.versions(ORDERS)
        yield from (f"version {v.version}, closed by {v.verb} at {format_duration(v.closed_ms)}" for v in kept)
        if not kept:
            yield "none"

    def _expire(self, flags: str) -> Iterator[str]:
        now_ms = parse_duration_ms(flags.removeprefix("--now ")) if flags else None
        report = expire_versions(self._topic.warehouse, ORDERS, now_ms=now_ms)
        yield f"expired: {' '.join(map(str, report.expired)) if report else 'nothing'}"

    def _sweep(self, flags: str) -> Iterator[str]:
        report = sweep(self._topic.warehouse, ORDERS, delete=flags == "--yes")
        names = sorted(file_name(file.path) for file in report.files)
        yield f"{'deleted' if report.deleted else 'may go'}: {' '.join(names) or 'nothing'}"

    def _segments(self) -> tuple[Segment, ...]:
        return self._topic.store.segments(self._topic.state)

    def _views(self) -> tuple[Segment, ...]:
        return self._topic.store.view(self._topic.state)


def _placed(text: str) -> tuple[int, str]:
    """The partition that `1: rest` names, 0 if it names none, and the rest."""
    partition, colon, rest = text.partition(": ")
    return (int(partition), rest) if colon else (0, text)
