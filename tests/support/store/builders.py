"""Topics, appends and rounds at the level of the port: one call of the store and one commit each.

They make the simplest edit that is right, and leave conflicts to the caller: an edit made on an old
state is refused by the store, which is what many tests are about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lithify.columnar.files.access import local_path
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import Segment, volume_of
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LastRecord, LogState, View
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.files import SegmentFiles
from lithify.ports.store import LogStore
from lithify.reports.rounds.round import LogReport, Losers, RoundReport
from lithify.store.iceberg import IcebergFiles, IcebergStore
from lithify.store.iceberg.catalog.embedded import CatalogSource, EmbeddedCatalog
from lithify.testing.fake_clock import FakeClock

ORDERS = TopicName("default", "orders")
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """A warehouse under test. `lose` makes the file of a segment go away behind the store's back."""

    store: LogStore
    files: SegmentFiles
    clock: FakeClock
    lose: Callable[[Segment], None]

    def create(self, name: TopicName = ORDERS, partitions: int = 1, **config: object) -> TopicState:
        """A new topic; settings by Kafka's names, with underscores for dots."""
        settings = settings_of({key.replace("_", "."): value for key, value in config.items()})
        return self.store.create_topic(NewTopic(name, str(name), settings, partitions, NOW_MS))

    def append(self, state: TopicState, records: Iterable[Record], *, run_id: str = "") -> TopicState:
        """Appends to whatever logs the records go to, in one commit on `state`."""
        run = run_id or self.clock.new_id()
        arriving = self.files.receive(state, list(records), now_ms=NOW_MS, keep_offsets=False)
        logs: dict[int, LogState] = {}
        added: list[Segment] = []
        for partition, arrivals in arriving.items():
            log = state.log(partition)
            segments = self.files.write(state, arrivals, log.log_end_offset, run)
            added += segments
            logs[partition] = replace(
                log,
                log_end_offset=segments[-1].end_offset,
                dirty=log.dirty + volume_of(segments),
                last_record=LastRecord(segments[-1].end_offset - 1, arrivals.last_timestamp_ms),
            ).with_run(run)
        return self.store.commit(state, TopicEdit(run, NOW_MS, logs, add=tuple(added)))

    def change(self, state: TopicState, partition: int = 0, *, run_id: str = "", **changes: object) -> TopicState:
        """Changes the state of a log and moves no file."""
        run = run_id or self.clock.new_id()
        log = replace(state.log(partition), **changes).with_run(run)  # type: ignore[arg-type]
        return self.store.commit(state, TopicEdit(run, NOW_MS, {partition: log}))

    def round(
        self,
        state: TopicState,
        partition: int = 0,
        *,
        keep: Callable[[Record], bool] = lambda _: True,
        report_id: str | None = None,
        closed_ms: int = NOW_MS,
    ) -> TopicState:
        """Replaces the segments of a log by one with the records to keep, in one commit on `state`."""
        run = self.clock.new_id()
        old = self.store.segments(state, [partition])
        kept = [record for record in self.records_of(old) if keep(record)]
        new = self.rewrite(state, kept, run) if kept else ()
        log = state.log(partition)
        after = replace(log, first_dirty_offset=log.log_end_offset, last_round_ms=closed_ms).with_run(run)
        edit = TopicEdit(
            run, closed_ms, {partition: after}, add=new, remove=old, report_id=report_id, verb=Verb.COMPACT
        )
        return self.store.commit(state, edit)

    def cover(
        self,
        state: TopicState,
        partition: int = 0,
        *,
        keep: Callable[[Record], bool] = lambda _: True,
        share: bool = False,
        closed_ms: int = NOW_MS,
    ) -> TopicState:
        """A round side by side: the view is made of it and of the backlog from D on, which stays as it is.

        One new segment, or with `share` the very segments of the view and the backlog.
        """
        run = self.clock.new_id()
        log = state.log(partition)
        old = self.store.view(state, [partition])
        dirty = tuple(s for s in self.store.segments(state, [partition]) if s.base_offset >= log.first_dirty_offset)
        if share:
            add, remove, view = dirty, (), old + dirty
        else:
            kept = [record for record in self.records_of(old + dirty) if keep(record)]
            add = view = self.rewrite(state, kept, run) if kept else ()
            remove = old
        after = replace(log, first_dirty_offset=log.log_end_offset, view=a_view(view), last_round=run).with_run(run)
        edit = TopicEdit(run, closed_ms, {partition: after}, view_add=add, view_remove=remove, verb=Verb.COMPACT)
        return self.store.commit(state, edit)

    def drop(
        self, state: TopicState, segments: tuple[Segment, ...], *, verb: Verb = Verb.RETAIN, closed_ms: int = NOW_MS
    ) -> TopicState:
        """Takes segments out of the backlog of partition 0, and leaves its view alone."""
        run = self.clock.new_id()
        log = state.log(0).with_run(run)
        return self.store.commit(state, TopicEdit(run, closed_ms, {0: log}, remove=segments, verb=verb))

    def drop_views(self, state: TopicState, *, closed_ms: int = NOW_MS) -> TopicState:
        """Gives the views of all logs up."""
        run = self.clock.new_id()
        logs = {log.partition: replace(log, view=None).with_run(run) for log in state.logs}
        view = self.store.view(state)
        return self.store.commit(state, TopicEdit(run, closed_ms, logs, view_remove=view, verb=Verb.UNCOMPACT))

    def rewrite(self, state: TopicState, records: Sequence[Record], run_id: str) -> tuple[Segment, ...]:
        """New segments of one log with records that have their offsets; not committed."""
        arriving = self.files.receive(state, list(records), now_ms=NOW_MS, keep_offsets=True)
        ((_, arrivals),) = arriving.items()
        assert arrivals.first_offset is not None
        return self.files.write(state, arrivals, arrivals.first_offset, run_id)

    def records(self, state: TopicState, partition: int = 0) -> list[Record]:
        """The records of a log at one version, in offset order."""
        return self.records_of(self.store.segments(state, [partition]))

    def view(self, state: TopicState, partition: int = 0) -> list[Record]:
        """The records of the view of a log at one version, in offset order."""
        return self.records_of(self.store.view(state, [partition]))

    def records_of(self, segments: Sequence[Segment]) -> list[Record]:
        return [record for s in segments for batch in self.files.read(s, 0) for record in batch.records()]


def an_iceberg_place(folder: Path, clock: FakeClock, source: CatalogSource | None = None) -> Place:
    """The Iceberg store in a local folder, or over a source of its own."""
    catalog = source or EmbeddedCatalog(str(folder))
    return Place(IcebergStore(catalog, clock.new_id), IcebergFiles(catalog, clock.new_id), clock, lose_file)


def a_view(segments: tuple[Segment, ...]) -> View:
    """What the state says about a view with these segments."""
    return View(volume_of(segments), segments[0].base_offset if segments else None)


def lose_file(segment: Segment) -> None:
    """Deletes the local file of a segment."""
    path = local_path(segment.path)
    assert path is not None
    Path(path).unlink()


def a_report(version: int) -> RoundReport:
    """A report that says everything, told by its version from the others."""
    log = LogReport(0, 1, 2, 2, "∅", losers=Losers(3), phases_ms={"key pass": 2**53}, error="it failed")
    return RoundReport("orders", version, True, (log,), 12, NOW_MS)


def some_records(*keys: str, value: str = "v") -> list[Record]:
    """Records with these keys, for partition 0, one millisecond apart."""
    return [Record(key.encode(), value.encode(), NOW_MS + n, partition=0) for n, key in enumerate(keys)]
