"""`lithify demo`: a small topic, compacted on Spark and drawn before and after."""

from __future__ import annotations

import tempfile
import textwrap
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.cli.invocation import Invocation, verb
from lithify.cli.rounds.verify import FOUND_SOMETHING
from lithify.cli.terminal.drawing import faint, heading, results, texts, width
from lithify.cli.terminal.output import print_json, show
from lithify.cli.terminal.progress import phase_progress
from lithify.errors import LithifyError
from lithify.model.record import Record
from lithify.reports.page import Outlet, Page

if TYPE_CHECKING:
    from lithify.api.topic import Topic
    from lithify.reports.rounds.round import RoundReport
    from lithify.reports.verification import VerifyReport

TOPIC = "cities"
PARTITIONS = 2
APPENDS = (
    "ana=Lima ben=Oslo cleo=Rome dan=Kyiv eva=Riga",
    "ana=Bonn ben= finn=Cork dan=Kyiv ana=Bern",
    "cleo=Nice eva= gil=Pune ana=Graz finn=Gent",
)
"""Who lives where, as a register would append it; `ben=` deletes a key."""

TOMBSTONE = "∅"
GONE = "·"


@verb("demo")
def demo(invocation: Invocation) -> int:
    """Show a compaction: a small topic before and after.

    Creates a topic in a temporary warehouse, compacts it on a local Spark, draws its logs, and
    verifies that nothing was lost. Takes some ten seconds and deletes the warehouse.

    \b
    Examples:
      lithify demo
      lithify demo --json | jq '.rounds[0].logs'
    """
    import lithify

    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="lithify-demo-") as folder:
            invocation.standing = f"the warehouse of the demo may still be in {folder}"
            topic = lithify.open(folder).create_topic(TOPIC, PARTITIONS)
            for line in APPENDS:
                topic.append(list(_records(line)))
            play = _Play(topic, invocation)
            play.opening()
            first = play.round_now()
            second = play.round_a_day_later(first)
            proof = play.proof()
            left = topic.info().records
    except KeyboardInterrupt:
        invocation.standing = "the warehouse of the demo was deleted"
        raise
    if invocation.json:
        print_json(
            {
                "topic": TOPIC,
                "records_before": len(play.before),
                "records_after": left,
                "rounds": [first.to_json(), second.to_json()],
                "verify": proof.to_json(),
                "duration_ms": round((time.monotonic() - started) * 1000),
            }
        )
    return 0 if proof.clean else FOUND_SOMETHING


def _records(line: str) -> Iterator[Record]:
    for pair in line.split():
        key, _, value = pair.partition("=")
        yield Record(key.encode(), value.encode() or None)


@dataclass(frozen=True, slots=True)
class _Play:
    """The steps of the demo. With `--json` they draw nothing."""

    topic: Topic
    before: tuple[Record, ...]
    invocation: Invocation

    def __init__(self, topic: Topic, invocation: Invocation) -> None:
        object.__setattr__(self, "topic", topic)
        object.__setattr__(self, "before", tuple(topic.reader()))
        object.__setattr__(self, "invocation", invocation)

    def opening(self) -> None:
        self._scene("1  A keyed topic with two logs, after three appends")
        self._tell("   A column is a record, │ begins a segment, ∅ deletes its key.", *self._drawing())

    def round_now(self) -> RoundReport:
        report = self._compacted()
        self._scene("2  Compacted: the latest record of every key remains, at its original offset")
        self._round(report)
        return report

    def round_a_day_later(self, first: RoundReport) -> RoundReport:
        retention_ms = int(self.topic.info().config["delete.retention.ms"])
        report = self._compacted(first.now_ms + retention_ms + 60_000)
        self._scene("3  Compacted as of a day later: delete.retention.ms has passed, the deletes are removed")
        self._round(report)
        return report

    def _compacted(self, now_ms: int | None = None) -> RoundReport:
        """Compacts the topic. Raises `LithifyError` if a log failed, as the texts that follow would be wrong."""
        with phase_progress(self.invocation.note) as progress:
            report = self.topic.compact(now_ms=now_ms, progress=progress)
        if report.failed:
            raise LithifyError(str(report.failed[0].error))
        return report

    def proof(self) -> VerifyReport:
        with phase_progress(self.invocation.note) as progress:
            report = self.topic.verify(progress=progress)
        self._scene("4  Verified against the log as it was")
        self._tell(
            *_wrapped(report.page()), "", "Next:  lithify topic create orders, then lithify produce orders --help"
        )
        return report

    def _round(self, report: RoundReport) -> None:
        page = report.page()
        self._tell(*self._drawing(), "", *(f"   {line}" for line in results(page)), *_wrapped(page))

    def _drawing(self) -> Iterator[str]:
        left = {(r.partition, r.offset) for r in self.topic.reader()}
        segments = self.topic.warehouse.store.segments(self.topic.state())
        for partition in range(PARTITIONS):
            yield from ("", f"   {heading(f'{TOPIC}-{partition}')}")
            records = [r for r in self.before if r.partition == partition]
            starts = {s.base_offset for s in segments if s.partition == partition}
            kept = {offset for p, offset in left if p == partition and offset is not None}
            yield from (f"   {line}" for line in _draw_log(records, kept, starts))

    def _scene(self, title: str) -> None:
        self._tell("", heading(title))

    def _tell(self, *lines: str) -> None:
        if not self.invocation.json:
            show(lines)


def _wrapped(page: Page) -> Iterator[str]:
    """What is said of a result."""
    for text in texts(page, Outlet.NOTICE):
        yield from textwrap.wrap(text, width(), initial_indent="   ", subsequent_indent="   ")


def _draw_log(records: Sequence[Record], left: Collection[int], segment_starts: Collection[int]) -> list[str]:
    """Lines that draw a log as it was, with gaps for the offsets that are not `left`.

        offset │ 0     1     2     │ 3     4
        key    │ ana   ben   cleo  │ ana   ben
        value  │ Lima  Oslo  Rome  │ Bonn  ∅

    `records` include removed ones, so that a log has the same columns before and after a round.
    """
    rows = [faint("offset "), faint("key    "), faint("value  ")]
    for record in records:
        assert record.offset is not None  # every stored record has one
        value = TOMBSTONE if record.value is None else record.value.decode()
        cells = (str(record.offset), (record.key or b"").decode(), value)
        cell_width = max(map(len, cells)) + 2
        if record.offset not in left:
            cells = (GONE, GONE, GONE)
        edge = faint("│ ") if record.offset in segment_starts else "  "
        rows = [f"{row}{edge}{cell.ljust(cell_width - 2)} " for row, cell in zip(rows, cells, strict=True)]
    return [row.rstrip() for row in rows]
