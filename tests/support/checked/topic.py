"""A topic and its textbook, side by side: every verb is done to both, and they must agree.

    verb ──► product (store, engine, clock; perhaps with bad luck on the way) ──► version, or not
         └─► textbook ──► what it must be now, or why it is refused

A struck verb has landed or has not: the version tells, and nothing in between is allowed (C6). One that
was paused while others worked is right if it did what it does before them, or what it does after them,
or was refused and did nothing (C44, C45).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from lithify.errors import DamagedError, InvalidSettingError, RunExpiredError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import segments_of, sizes_of
from lithify.model.settings.topic_settings import TopicSettings, changed, settings_of
from lithify.model.topic.log import WrittenBatch
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.pieces import Reading
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.retain import retain
from lithify.service.change.undo import undo
from lithify.service.read.fetch import open_log
from lithify.service.write.append import append
from support.checked.trouble import Act, Attempt, Meanwhile, RandomPlace, Trouble, attempt
from support.textbook.log import TextbookLog
from support.textbook.records import at
from support.textbook.topic import RefusedError, Segments, TextbookTopic
from support.topics.staged_batches import append_batch

NAME = TopicName("default", "orders")
BOTH = (False, True)
"""Plain and compacted."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A version that a verb may go by, its textbook, and settings and a time that it may have read."""

    model: TextbookTopic
    settings: TopicSettings
    """By which what arrives is taken in."""
    state: TopicState
    segments: Segments
    """By partition: the textbook asks where they end and how large they are."""
    views: Segments
    kept: tuple[str, ...]
    """The runs that closed the versions that are kept."""
    now_ms: int
    fences: int
    """How often a sweep had committed, to abandon runs (C45)."""


Expect = Callable[[Moment], TextbookTopic]
"""What a verb makes of the textbook, or raises `RefusedError`."""


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
    fences: int = 0
    """Commits of sweeps."""
    latest_ms: int = 0
    """The latest time so far: a commit that began before the clock was set back has it, and lands after others."""

    @classmethod
    def create(cls, place: RandomPlace, partitions: int, config: Mapping[str, object]) -> CheckedTopic:
        settings = settings_of(config)
        place.warehouse.store.create_topic(NewTopic(NAME, "orders", settings, partitions, place.clock.now_ms()))
        topic = cls(place, TextbookTopic(settings, tuple(TextbookLog(p) for p in range(partitions))))
        topic.look(place.clock.now_ms())
        return topic

    @property
    def state(self) -> TopicState:
        return self.place.warehouse.store.load(NAME)

    def moment(self) -> Moment:
        """How things are now."""
        state, store = self.state, self.place.warehouse.store
        every, viewed = store.segments(state), store.view(state)
        segments, views = ({p: segments_of(s, p) for p in state.partitions} for s in (every, viewed))
        kept = tuple(version.closed_by for version in store.versions(NAME))
        return Moment(
            self.model, self.model.settings, state, segments, views, kept, self.place.clock.now_ms(), self.fences
        )

    def is_past_retention(self, now_ms: int) -> bool:
        """Whether whole segments may go from the front of a log (C24)."""
        settings, segments = self.model.settings, self.moment().segments
        return any(log.gone(segments[log.partition], settings, now_ms) for log in self.model.logs)

    def lags_less(self, now_ms: int) -> bool:
        """Whether a log may be covered further on: of its newest bytes, which are not, some went in a round (C14)."""
        settings, segments = self.model.settings, self.moment().segments
        if settings.min_compaction_lag_bytes == 0:
            return False
        return any(log.horizon(segments[log.partition], settings, now_ms) > log.dirty_from for log in self.model.logs)

    def move_end(self, partition: int, end: int, trouble: Trouble = None) -> bool:
        """Nothing is appended, and the log ends elsewhere."""
        return self._do(
            lambda moment: moment.model.ended(partition, end),
            lambda warehouse: append(warehouse, NAME, [], keep_offsets=True, end_offsets={partition: end}),
            trouble,
        )

    def append(self, records: Sequence[Record], *, keep_offsets: bool = False, trouble: Trouble = None) -> bool:
        return self._do(
            lambda moment: moment.model.appended(
                records, moment.model.settings, moment.now_ms, keep_offsets=keep_offsets
            ),
            lambda warehouse: append(warehouse, NAME, records, keep_offsets=keep_offsets),
            trouble,
        )

    def append_staged(self, records: Sequence[Record], batch_id: int, trouble: Trouble = None) -> bool:
        """What one task wrote at the log ends that it knew, as a batch of a query (C6, C14)."""
        return self._do(
            lambda moment: moment.model.batch_appended(records, moment.settings, moment.now_ms, batch_id),
            lambda w: append_batch(w, NAME, [records], WrittenBatch("query", batch_id), w.files),
            trouble,
        )

    def retain(self, given_ms: int | None = None, trouble: Trouble = None) -> bool:
        return self._do(
            lambda moment: moment.model.retained(moment.segments, moment.now_ms if given_ms is None else given_ms),
            lambda w: retain(w, NAME, now_ms=given_ms),
            trouble,
        )

    def group_reads(self, partition: int, group: str, offset: int) -> None:
        """A group commits a position, which is no commit of the topic."""
        self.place.groups.commit(self.state, partition, group, offset, self.place.clock.now_ms())
        self.model = self.model.read(partition, group, offset)

    def delete_records(self, partition: int, before: int, trouble: Trouble = None) -> bool:
        return self._do(
            lambda moment: moment.model.records_deleted(partition, before),
            lambda w: delete_records(w, NAME, partition, before),
            trouble,
        )

    def truncate(self, partition: int, to: int, *, below_compacted: bool = False, trouble: Trouble = None) -> bool:
        return self._do(
            lambda moment: moment.model.truncated(partition, to, below_compacted=below_compacted),
            lambda w: truncate(w, NAME, partition, to, below_compacted=below_compacted),
            trouble,
        )

    def alter(self, config: Mapping[str, object], partitions: int | None = None, trouble: Trouble = None) -> bool:
        def expect(moment: Moment) -> TextbookTopic:
            model = moment.model
            wanted = len(model.logs) if partitions is None else partitions
            return model.altered(_checked(model.settings, config), wanted, config.keys())

        return self._do(expect, lambda w: alter(w, NAME, config, partitions=partitions), trouble)

    def uncompact(self, *, lose_trimmed: bool = False, trouble: Trouble = None) -> bool:
        return self._do(
            lambda moment: moment.model.uncompacted(lose_trimmed=lose_trimmed),
            lambda w: uncompact(w, NAME, lose_trimmed=lose_trimmed),
            trouble,
        )

    def undo(self, trouble: Trouble = None) -> bool:
        return self._do(lambda moment: moment.model.undone(moment.kept), lambda w: undo(w, NAME), trouble)

    def _do(self, expect: Expect, act: Callable[[Warehouse], object], trouble: Trouble) -> bool:
        """Does a verb to both; returns whether it was acknowledged."""
        doing = _Doing(self, expect, [self.moment()], isinstance(trouble, tuple))
        done = self.attempt(lambda place: act(place.warehouse), trouble, doing.meanwhile)
        doing.settle()
        doing.judge(done)
        return done.error is None

    def attempt(self, act: Act, trouble: Trouble, meanwhile: Meanwhile) -> Attempt:
        """What the verb ended with."""
        return attempt(self.place, act, trouble, meanwhile)

    def agrees(self, model: TextbookTopic) -> bool:
        """Whether readers find the topic as `model` has it."""
        state = self.state
        return state.settings == model.settings and [self._face(state, p) for p in state.partitions] == [
            _face(log) for log in model.logs
        ]

    def _face(self, state: TopicState, partition: int) -> tuple[object, ...]:
        log, ways = state.log(partition), [Reading(compacted=compacted) for compacted in BOTH]
        found = (tuple(open_log(self.place.warehouse, state, partition, "earliest", how)) for how in ways)
        bounds = log.log_start_offset, log.first_dirty_offset, log.log_end_offset, log.view is None
        return *bounds, log.deleted_below, *found

    def look(self, begun_ms: int) -> None:
        """Remembers the newest version, and which files it names no more."""
        state, store = self.state, self.place.warehouse.store
        self.pictures[state.version] = self.model
        named = frozenset(sizes_of((*store.segments(state), *store.view(state))))
        ended_ms = self.place.clock.now_ms()  # the clock may have gone back meanwhile
        self.latest_ms = max(self.latest_ms, begun_ms, ended_ms)
        self.closed.update(dict.fromkeys(self.named - named, (min(begun_ms, ended_ms), self.latest_ms)))
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
    bounds = log.start, log.dirty_from, log.end, log.view is None
    return *bounds, log.deleted_below, *(log.reading(compacted=c) for c in BOTH)


@dataclass(slots=True)
class _Doing:
    """A verb under way: what it may go by, and whether it has landed."""

    topic: CheckedTopic
    expect: Expect
    moments: list[Moment]
    """Before it, and once others have come in between."""
    may_be_blind: bool
    """A strike may have kept it from reading the positions of groups."""
    has_landed: bool = False

    def meanwhile(self, others: Callable[[], object], _: Sequence[str]) -> None:
        self.settle()
        others()
        self.moments.append(self.topic.moment())

    def settle(self) -> None:
        """The version moved since the last moment, and no other verb moved it: it has landed, on that moment."""
        topic, last = self.topic, self.moments[-1]
        if topic.state.version == last.state.version:
            return
        assert not self.has_landed, "it landed twice"
        self.has_landed = True
        wanted = [model for model in self._of(last) if isinstance(model, TextbookTopic)]
        assert wanted, f"{next(iter(self._of(last)))} was done all the same"
        found = wanted if len(wanted) == 1 else [model for model in wanted if topic.agrees(model)]
        topic.model = (found or wanted)[0].read_as(last.model)
        topic.look(self.moments[0].now_ms)

    def judge(self, done: Attempt) -> None:
        """Whether what it ended with is right."""
        if done.struck:
            return
        ways = [(moment.model, wanted) for moment in self.moments for wanted in self._of(moment)]
        if done.error is None:
            idle = any(isinstance(wanted, TextbookTopic) and _alike(wanted, model) for model, wanted in ways)
            refused = f"; expected {[w for _, w in ways if isinstance(w, RefusedError)]}"
            assert self.has_landed or idle, f"acknowledged, and nothing was committed{refused}"
            return
        assert not self.has_landed, f"done, and refused: {done.error!r}"
        kinds = {wanted.kind for _, wanted in ways if isinstance(wanted, RefusedError)}
        fences = self.moments[-1].fences - self.moments[0].fences
        abandoned = fences > 0 and type(done.error) is RunExpiredError
        forgotten = fences > 1 and type(done.error) is DamagedError  # by the second, as its files are gone
        if type(done.error) not in kinds and not (abandoned or forgotten):
            raise done.error

    def _of(self, moment: Moment) -> list[TextbookTopic | RefusedError]:
        """What it may come to on a moment, whichever settings and time it has read, the latest first."""
        first = self.moments[0]
        times = dict.fromkeys((moment.now_ms, first.now_ms))
        read = dict.fromkeys((moment.settings, first.settings))
        models = [moment.model, moment.model.read_as(first.model)]
        if self.may_be_blind:
            nobody = replace(first.model, logs=tuple(replace(log, readers={}) for log in first.model.logs))
            models.append(moment.model.read_as(nobody))
        ways = product(models if moment.model.settings.trimming_groups else models[:1], times, read)
        return [self._at(replace(moment, model=m, now_ms=t, settings=s)) for m, t, s in ways]

    def _at(self, moment: Moment) -> TextbookTopic | RefusedError:
        try:
            return self.expect(moment)
        except RefusedError as refused:
            return refused
