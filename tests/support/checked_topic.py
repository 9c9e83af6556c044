"""A topic and its textbook, side by side: every verb is done to both, and they must agree.

    verb ──► product (store, engine, clock; perhaps struck on the way) ──► version, or not
         └─► textbook ──► what it must be now, or why it is refused

A struck verb has landed or has not: the version tells, and nothing in between is allowed (C6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from faults.injection import CrashError, Injector, Kind, faulty
from lithify.errors import InvalidSettingError, LithifyError
from lithify.model.log import TopicState, segments_of
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings import TopicSettings, changed, settings_of
from lithify.ports import Warehouse
from lithify.service.alter import alter, uncompact
from lithify.service.append import append
from lithify.service.cursor import Reading
from lithify.service.cut import delete_records, truncate
from lithify.service.fetch import open_log
from lithify.service.retain import retain
from lithify.service.undo import undo
from support.fake_clock import FakeClock
from support.textbook_log import TextbookLog, at
from support.textbook_topic import RefusedError, Segments, TextbookTopic

NAME = TopicName("default", "orders")

Strike = tuple[int, Kind] | None
"""Which port call of a verb is struck, from 1, and how."""


@dataclass(frozen=True, slots=True)
class RandomPlace:
    """A store and an engine under test. Sizes of records are of the order of `size_unit` bytes."""

    warehouse: Warehouse
    engine: object
    clock: FakeClock
    size_unit: int = 1


@dataclass(slots=True)
class CheckedTopic:
    """One topic. `pictures` has the textbook of every version that was seen, `closed` when at the
    earliest and at the latest a file was named last."""

    place: RandomPlace
    model: TextbookTopic
    pictures: dict[int, TextbookTopic] = field(default_factory=dict)
    closed: dict[str, tuple[int, int]] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    checked: tuple[int, int] = (0, 0)
    """The version that was read as a whole last, and the time."""

    @classmethod
    def create(cls, place: RandomPlace, partitions: int, config: Mapping[str, object]) -> CheckedTopic:
        settings = settings_of(config)
        place.warehouse.store.create_topic(NAME, "orders", settings, partitions, place.clock.now_ms())
        topic = cls(place, TextbookTopic(settings, tuple(TextbookLog(p) for p in range(partitions))))
        topic.look(place.clock.now_ms())
        return topic

    @property
    def state(self) -> TopicState:
        return self.place.warehouse.store.load(NAME)

    def segments(self) -> Segments:
        """Those of the newest version, by partition: the textbook asks where they end and how large they are."""
        state = self.state
        every = self.place.warehouse.store.segments(state)
        return {p: segments_of(every, p) for p in state.partitions}

    def is_past_retention(self, now_ms: int) -> bool:
        """Whether whole segments may go from the front of a log (C24)."""
        settings, segments = self.model.settings, self.segments()
        return any(log.gone(segments[log.partition], settings, now_ms) for log in self.model.logs)

    def move_end(self, partition: int, end: int, strike: Strike = None) -> bool:
        """Nothing is appended, and the log ends elsewhere."""
        return self._do(
            lambda: self.model.ended(partition, end),
            lambda warehouse: append(warehouse, NAME, [], keep_offsets=True, end_offsets={partition: end}),
            strike,
        )

    def append(self, records: Sequence[Record], *, keep_offsets: bool = False, strike: Strike = None) -> bool:
        now_ms = self.place.clock.now_ms()
        return self._do(
            lambda: self.model.appended(records, now_ms, keep_offsets=keep_offsets),
            lambda warehouse: append(warehouse, NAME, records, keep_offsets=keep_offsets),
            strike,
        )

    def retain(self, now_ms: int | None = None, strike: Strike = None) -> bool:
        segments, judged_ms = self.segments(), self.place.clock.now_ms() if now_ms is None else now_ms
        return self._do(
            lambda: self.model.retained(segments, judged_ms), lambda w: retain(w, NAME, now_ms=now_ms), strike
        )

    def delete_records(self, partition: int, before: int, strike: Strike = None) -> bool:
        return self._do(
            lambda: self.model.records_deleted(partition, before),
            lambda w: delete_records(w, NAME, partition, before),
            strike,
        )

    def truncate(self, partition: int, to: int, *, below_compacted: bool = False, strike: Strike = None) -> bool:
        return self._do(
            lambda: self.model.truncated(partition, to, below_compacted=below_compacted),
            lambda w: truncate(w, NAME, partition, to, below_compacted=below_compacted),
            strike,
        )

    def alter(self, config: Mapping[str, object], partitions: int | None = None, strike: Strike = None) -> bool:
        wanted = len(self.model.logs) if partitions is None else partitions
        return self._do(
            lambda: self.model.altered(_checked(self.model.settings, config), wanted),
            lambda w: alter(w, NAME, config, partitions=partitions),
            strike,
        )

    def uncompact(self, *, lose_trimmed: bool = False, strike: Strike = None) -> bool:
        return self._do(
            lambda: self.model.uncompacted(lose_trimmed=lose_trimmed),
            lambda w: uncompact(w, NAME, lose_trimmed=lose_trimmed),
            strike,
        )

    def undo(self, strike: Strike = None) -> bool:
        kept = [version.closed_by for version in self.place.warehouse.store.versions(NAME)]
        return self._do(lambda: self.model.undone(kept), lambda w: undo(w, NAME), strike)

    def _do(self, expect: Callable[[], TextbookTopic], act: Callable[[Warehouse], object], strike: Strike) -> bool:
        """Does a verb to both; returns whether it was acknowledged."""
        before, begun_ms = self.state.version, self.place.clock.now_ms()
        wanted: TextbookTopic | RefusedError
        try:
            wanted = expect()
        except RefusedError as refused:
            wanted = refused
        error, injector = self.attempt(act, strike)
        struck = injector is not None and injector.struck
        landed = self.state.version != before
        if isinstance(wanted, RefusedError):
            assert not landed, f"{wanted} was done all the same"
            assert struck or type(error) is wanted.kind, f"{wanted} expected, not {error!r}"
            return False
        if error is not None and not struck:
            raise error
        assert landed or error is not None or _alike(wanted, self.model), "acknowledged, and nothing was committed"
        if landed:
            self.model = wanted
            self.look(begun_ms)
        return error is None

    def attempt(
        self, act: Callable[[Warehouse], object], strike: Strike
    ) -> tuple[LithifyError | CrashError | None, Injector | None]:
        """What the verb ended with, perhaps struck."""
        injector = None if strike is None else Injector(*strike)
        warehouse = self.place.warehouse if injector is None else faulty(self.place.warehouse, injector)
        try:
            act(warehouse)
        except (LithifyError, CrashError) as error:
            return error, injector
        return None, injector

    def look(self, begun_ms: int) -> None:
        """Remembers the newest version, and which files it names no more."""
        state, store = self.state, self.place.warehouse.store
        self.pictures[state.version] = self.model
        named = frozenset(s.path for s in (*store.segments(state), *store.view(state)))
        ended_ms = self.place.clock.now_ms()  # the clock may have gone back meanwhile
        when = min(begun_ms, ended_ms), max(begun_ms, ended_ms)
        self.closed.update(dict.fromkeys(self.named - named, when))
        self.named = named

    def offsets(self, partition: int) -> frozenset[int]:
        """What a reader of compacted data gets now."""
        reader = open_log(self.place.warehouse, self.state, partition, "earliest", Reading(compacted=True))
        return frozenset(at(record) for record in reader)


def _checked(settings: TopicSettings, config: Mapping[str, object]) -> TopicSettings:
    try:
        return changed(settings, config)
    except InvalidSettingError:
        raise RefusedError(InvalidSettingError) from None


def _alike(one: TextbookTopic, other: TextbookTopic) -> bool:
    """Whether no reader could tell them apart."""
    return one.settings == other.settings and [_face(log) for log in one.logs] == [_face(log) for log in other.logs]


def _face(log: TextbookLog) -> tuple[object, ...]:
    return log.start, log.dirty_from, log.end, log.view, log.deleted_below, log.reading(compacted=False)
