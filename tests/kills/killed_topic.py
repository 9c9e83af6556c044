"""A topic whose every verb is done by a child that is killed on the way, held to the textbook (C6).

    verb ──► child on the real store, SIGKILL ──► landed, or not: the version tells ──► textbook
                                                       └── another child reads everything

Nothing here but metadata is read by this process itself, so that it never has threads to fork with.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from lithify.errors import LithifyError, UnknownTopicError
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.stored_file import FileKind
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import LogStore, Warehouse
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from support.checked.reading import OpenReader, check_topic
from support.checked.topic import NAME, CheckedTopic, Expect
from support.checked.trouble import Act, Attempt, Meanwhile, RandomPlace, Trouble
from support.faults.ports import CrashError
from support.processes.forked import Reply, killed, outcome, result
from support.textbook.log import TextbookLog
from support.textbook.topic import RefusedError, TextbookTopic

UNDISTURBED = 0.2
"""The share of verbs that may end, so that a topic gets on and we know how long each takes."""

LATEST = 1.2
"""Kills come at any time from nothing to this share of what an undisturbed one takes; more of them late
than early, since what counts happens near the end."""

IDS_OF_A_CHILD = 20
"""A child makes up ids from where its parent stands: the next one starts above all of them."""


@dataclass(slots=True)
class Kills:
    """Kills of one verb: before its commit, after it, and after its acknowledgement."""

    before: int = 0
    after: int = 0
    acknowledged: int = 0
    usual_s: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.before + self.after + self.acknowledged


@dataclass(slots=True)
class Killer:
    """Decides when a child is killed: at any moment between nothing and what an undisturbed one takes."""

    luck: random.Random
    verbs: dict[str, Kills]
    most: int
    """So many kills, and then everything may end."""
    verb: str = ""
    last: Reply | None = None
    last_killed: bool = False

    @property
    def is_done(self) -> bool:
        return sum(kills.count for kills in self.verbs.values()) >= self.most

    def run(self, verb: str, action: Callable[[], object]) -> None:
        """Does it in a child, which is killed or not."""
        self.verb, usual = verb, self.verbs[verb].usual_s
        self.last_killed = bool(usual) and not self.is_done and self.luck.random() > UNDISTURBED
        if self.last_killed:
            self.last = killed(action, LATEST * self.luck.betavariate(2, 1) * median(usual[-5:]))
        else:
            self.last = outcome(action)
            usual.append(self.last.seconds)

    @property
    def error(self) -> LithifyError | CrashError | None:
        """How it ended for its caller."""
        if self.last is None:
            return CrashError(self.verb)
        error = self.last.error
        if error is not None and not isinstance(error, LithifyError):
            raise error
        return error

    def landed(self, is_there: bool) -> None:
        """Counts the last one."""
        kills = self.verbs[self.verb]
        if not self.last_killed:
            return
        if self.last is not None:
            kills.acknowledged += 1
        elif is_there:
            kills.after += 1
        else:
            kills.before += 1


@dataclass(slots=True)
class KilledTopic(CheckedTopic):
    """One topic, whose verbs are done by the children of `killer`."""

    killer: Killer = field(kw_only=True)
    readers: list[OpenReader] = field(default_factory=list)

    @classmethod
    def made(cls, place: RandomPlace, settings: TopicSettings, partitions: int, killer: Killer) -> KilledTopic:
        """Makes it, as often as it takes: one that was killed left no topic, or a whole one."""
        store = place.warehouse.store
        while True:
            for _ in range(IDS_OF_A_CHILD):
                place.clock.new_id()
            killer.run("topic create", lambda: _made(place, settings, partitions))
            is_there = NAME in store.topics()
            killer.landed(is_there)
            assert is_there or killer.error is not None, "acknowledged, and there is no topic"
            if is_there:
                model = TextbookTopic(settings, tuple(TextbookLog(p) for p in range(partitions)))
                topic = cls(place, model, killer=killer)
                topic.look(place.clock.now_ms())
                topic.check()
                return topic

    def delete(self) -> None:
        """Deletes it, as often as it takes: one that was killed left all of it, or no topic."""
        warehouse = self.place.warehouse
        while True:
            self.killer.run("topic delete", lambda: warehouse.store.drop_topic(NAME))
            is_there = NAME in warehouse.store.topics()
            self.killer.landed(not is_there)
            assert not is_there or self.killer.error is not None, "acknowledged, and still there"
            if not is_there:
                assert _is_unknown(warehouse)
                return
            self.check()

    def sweep(self) -> None:
        """C6, C45: whatever was deleted by then, nothing is gone that a kept version needs, nor anything
        that a commit could have named unless the version has moved, which changes nothing else."""
        store, begun_ms = self.place.warehouse.store, self.place.clock.now_ms()
        if not result(lambda: sweep(self.place.warehouse, NAME, delete=False).files):
            return
        newest, kept = self.state, store.versions(NAME)
        states = [newest, *(store.load_version(NAME, v.version) for v in kept)]
        needed = {s.path for state in states for s in (*store.segments(state), *store.view(state))}
        before = {file.path: file.kind for file in store.stored_files(newest)}
        done = self.attempt(lambda place: sweep(place.warehouse, NAME, delete=True), None, _no_others)
        assert done.error is None or done.struck, done.error
        now = self.state
        gone = before.keys() - {file.path for file in store.stored_files(now)}
        moved = now.version > newest.version
        self.killer.landed(moved or bool(gone))
        assert not gone & needed, "a file of a kept version was deleted"
        never_named = {path for path in gone - self.closed.keys() if before[path] is FileKind.OUTPUT}
        assert moved or not never_named, "a file that a commit could have named was deleted without a fence"
        assert (_facts(store, now), store.versions(NAME)) == (_facts(store, newest), kept)
        self.look(begun_ms)

    def expire(self) -> None:
        """C7: the topic reads as before, whichever of its versions are kept."""
        self._do(lambda moment: moment.model, lambda warehouse: expire_versions(warehouse, NAME), None)

    def attempt(self, act: Act, trouble: Trouble, meanwhile: Meanwhile) -> Attempt:
        """What the verb ended with, for the caller that waited for it."""
        for _ in range(IDS_OF_A_CHILD):
            self.place.clock.new_id()
        self.killer.run(self.killer.verb, lambda: act(self.place))
        return Attempt(self.killer.error, struck=self.killer.last is None)

    def _do(self, expect: Expect, act: Callable[[Warehouse], object], trouble: Trouble) -> bool:
        try:
            expect(self.moment())
        except RefusedError:
            return False  # nothing would be written
        version = self.state.version
        done = CheckedTopic._do(self, expect, act, trouble)
        self.killer.landed(self.state.version != version)
        return done

    def offsets(self, partition: int) -> frozenset[int]:
        return result(lambda: CheckedTopic.offsets(self, partition))

    def check(self) -> None:
        """Everything is read, and readers that were opened before get what they got."""
        self.checked = (0, 0)

        def whole() -> None:
            check_topic(self)
            for reader in self.readers:
                reader.read_on(10_000)

        result(whole)


def _no_others(_others: object, _calls: object) -> None:
    """No verb is paused here."""


def _made(place: RandomPlace, settings: TopicSettings, partitions: int) -> None:
    place.warehouse.store.create_topic(NewTopic(NAME, "orders", settings, partitions, place.clock.now_ms()))


def _facts(store: LogStore, state: TopicState) -> tuple[object, ...]:
    """What a version says of its records and their files."""
    return state.settings, state.logs, store.segments(state), store.view(state)


def _is_unknown(warehouse: Warehouse) -> bool:
    try:
        warehouse.store.load(NAME)
    except UnknownTopicError:
        return True
    return False
