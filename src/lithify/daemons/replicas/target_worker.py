"""The replicas at one target, with threads of their own: a target that hangs delays no other.

    offer ─► one look at the target's change tokens ─► topics that are due ─► passes, a few at a time
                        │ it cannot be reached
                        └► all its topics have failed, and wait as long as after failures of their own

A topic whose tokens on both sides are the same as at the last pass costs a comparison. One with other tokens whose
replica has caught up costs two loads, as at every start. Only one that lacks something costs a lease.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Condition, Thread

from lithify.daemons.outages import LEASES
from lithify.daemons.replicas.context import OpenPlace, Place
from lithify.daemons.replicas.groups import PositionsPass, PositionTokens, TargetGroups
from lithify.daemons.replicas.notes import Key
from lithify.daemons.replicas.passes import DaemonParts, Item, ReplicaPass, failure_of
from lithify.errors import CoordinationError, LithifyError, WarehouseError
from lithify.errors.defects import as_lithify_error
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import TopicProgress
from lithify.rules.schedule.replication import Tokens, is_due

Asked = tuple[int, bool]
"""When a replica was defined, and whether it compacts by itself: a pass may differ for another one."""

WAKES_S = 0.5
"""Between two checks of what has ended, without a notification."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The replicas of a target and the topics of the source, as of one look."""

    definitions: tuple[ReplicaDefinition, ...]
    streams: Mapping[str, Mapping[TopicName, str | None]]
    """By stream and topic, the change tokens of the source."""
    ignores_waits: bool = False
    """Whether also what failed lately is tried."""
    tokens: PositionTokens | None = None
    """Of the positions at the source, where they are known and a definition wants them copied."""

    def token(self, name: TopicName) -> str | None:
        return self.streams.get(name.stream, {}).get(name)


@dataclass(slots=True)
class Outcome:
    """What has become of the topics of a worker since it began."""

    wanted: set[Key] = field(default_factory=set)
    """As of the last look."""
    caught_up: set[Key] = field(default_factory=set)
    failed: set[Key] = field(default_factory=set)
    without_positions: set[Key] = field(default_factory=set)
    """Of those that have caught up, where the positions of groups could not be copied."""


class TargetWorker:
    """One target. `run` is for a thread of its own; the other methods are for any."""

    def __init__(self, parts: DaemonParts, open_place: OpenPlace, target: str, threads: int) -> None:
        self.target = target
        self.outcome = Outcome()
        self._parts, self._open_place, self._threads = parts, open_place, threads
        self._changed = Condition()
        self._place: Place | None = None
        self._was_there = False
        self._offer: Offer | None = None
        self._is_busy = False
        self._ended = False
        self._queue: list[Item] = []
        self._running: dict[Key, Thread] = {}
        self._seen: dict[Key, tuple[Asked, Tokens]] = {}
        self._tokens: dict[Key, Tokens] = {}
        self.behind_ms: dict[Key, int] = {}
        """Since when each topic has lacked something."""
        self._groups = TargetGroups()

    def offer(self, offer: Offer) -> None:
        """What the source has now. Of two offers during one look the later one remains."""
        with self._changed:
            self._offer = offer
            self._changed.notify()

    def end(self) -> None:
        """It begins no other pass."""
        with self._changed:
            self._ended = True
            self._queue = []
            self._changed.notify()

    @property
    def is_idle(self) -> bool:
        """Whether it has taken the last offer, and no pass of it is left."""
        with self._changed:
            return self._offer is None and not (self._is_busy or self._queue or self._running)

    def run(self) -> None:
        """Looks and begins passes until `end` is called."""
        while True:
            with self._changed:
                while self._offer is None and not self._ended and not self._may_begin():
                    self._changed.wait(WAKES_S)
                if self._ended:
                    return
                offer, self._offer = self._offer, None
                self._is_busy = True
            try:
                if offer is not None:
                    self._look(offer)
                self._begin()
            finally:
                with self._changed:
                    self._is_busy = False

    def _may_begin(self) -> bool:
        return bool(self._queue) and len(self._running) < self._threads

    def _look(self, offer: Offer) -> None:
        parts, now_ms = self._parts, self._parts.source.clock.now_ms()
        everything = list(self._wanted(offer))
        self.outcome.wanted = {key for key, _ in everything}
        with self._changed:
            wanted = [(key, definition) for key, definition in everything if key not in self._running]
        try:
            there = self._tokens_of_target([key for key, _ in wanted], offer)
        except Exception as error:
            self._place = None
            self._all_failed(wanted, offer, as_lithify_error(error, f"the replicas in {self.target}"), now_ms)
            return
        parts.reporter.well(self.target)
        due = []
        for key, definition in wanted:
            tokens, noted = Tokens(offer.token(key[1]), there.get(key[1])), parts.notes.of(key)
            asked, seen = self._seen.get(key, (None, None))
            if asked != _asked(definition):
                seen = None
            positions = self._positions(key, definition, offer)
            waits = noted is not None and noted.retry_ms is not None
            has_due = positions is not None and positions.is_due
            if not is_due(seen, tokens, noted, now_ms) and not (offer.ignores_waits if waits else has_due):
                continue
            if seen is None or seen.source != tokens.source:
                self.behind_ms.setdefault(key, _behind_since_ms(noted, now_ms))
            self._tokens[key] = tokens
            due.append(Item(definition, key[1], key[1] not in there, self.behind_ms.get(key, now_ms), positions))
        due.sort(key=lambda item: (item.behind_since_ms, item.key))
        with self._changed:
            self._queue = [] if self._ended else due
        self._drop_unwanted(self.outcome.wanted)

    def _positions(self, key: Key, definition: ReplicaDefinition, offer: Offer) -> PositionsPass | None:
        """The positions of a topic, if they are to be copied."""
        tokens = offer.tokens if definition.sync_groups else None
        if tokens is None or self._place is None:
            return None
        tokens = self._groups.look(tokens, self._place)
        return PositionsPass(self._parts.groups, self._place, key, tokens, self._groups)

    def _wanted(self, offer: Offer) -> Iterator[tuple[Key, ReplicaDefinition]]:
        """The topics of all replicas: those that the source has, and those that it had."""
        noted: dict[str, set[TopicName]] = {}
        for replica, topic in self._parts.notes.all():
            noted.setdefault(replica, set()).add(topic)
        for definition in offer.definitions:
            topics = {name for name in noted.get(definition.name, ()) if definition.covers(name)}
            if definition.topic is None:
                topics.update(offer.streams.get(definition.stream, ()))
            else:
                topics.add(TopicName(definition.stream, definition.topic))
            yield from (((definition.name, topic), definition) for topic in topics)

    def _tokens_of_target(self, keys: list[Key], offer: Offer) -> dict[TopicName, str | None]:
        """The target's change tokens. Raises `WarehouseError` if there is no warehouse any more."""
        scopes = {definition.target_scope for definition in offer.definitions}
        if self._place is None or not _is_one_of(scopes, self._place.scope):
            self._place = self._open_place(self.target)  # another daemon may have given it its identity
        scope = self._place.scope
        if not _is_one_of(scopes, scope):
            self._place.exists()  # raises where it cannot be reached, and so has no identity
            raise WarehouseError(
                f"{self.target} is not the warehouse to which the replica was added: {scope.where}",
                hint="correct the description of the catalog, or remove the replica and add it again",
            )
        # The first copies may note no version for hours, and what is unmounted meanwhile is not a new target.
        had = self._was_there or any(noted is not None and noted.version for noted in map(self._parts.notes.of, keys))
        self._was_there |= (is_there := self._place.exists())
        if had and not is_there:
            raise WarehouseError(
                f"{self.target}: the warehouse with the copied replicas is no longer there",
                hint="check that its disk is mounted; to start over, remove the replica and add it again",
            )
        return dict(self._place.warehouse.store.change_tokens())

    def _all_failed(
        self, wanted: list[tuple[Key, ReplicaDefinition]], offer: Offer, error: LithifyError, now_ms: int
    ) -> None:
        """Notes the target's own error for all its topics that are not waiting for their next try."""
        parts, failed = self._parts, []
        parts.reporter.outage(self.target, error)
        for key, definition in wanted:
            noted = parts.notes.of(key)
            if noted is None or is_due(None, Tokens(None, None), noted, now_ms) or offer.ignores_waits:
                behind_ms = self.behind_ms.setdefault(key, _behind_since_ms(noted, now_ms))
                failed.append(failure_of(Item(definition, key[1], False, behind_ms), noted, error, parts))
        parts.notes.note(failed)
        self.outcome.failed.update(key for key, _ in wanted)
        with self._changed:
            self._queue = []

    def _begin(self) -> None:
        """Begins passes of queued topics, as many as there are threads."""
        with self._changed:
            free = self._threads - len(self._running)
            items, self._queue = self._queue[:free], self._queue[free:]
        if not items or self._place is None:
            return
        for item in items:
            one = ReplicaPass(self._parts, self._place.warehouse, item)
            thread = Thread(target=self._do, args=(one, item), daemon=True)
            with self._changed:
                self._running[item.key] = thread
            thread.start()

    def _do(self, one: ReplicaPass, item: Item) -> None:
        caught_up: bool | None = False
        try:
            caught_up = True if one.is_caught_up() else self._leased(one, item)
        except Exception as error:  # the database of leases, or a defect
            self._report(item, as_lithify_error(error, f"the replica of {item.name}"))
        finally:
            with self._changed:
                self._note_end(item, caught_up)
                self._changed.notify()

    def _leased(self, one: ReplicaPass, item: Item) -> bool | None:
        """A pass under its lease; None if another daemon holds that."""
        if not self._parts.leases.take([item.lease]):
            return None
        try:
            return one.run()
        finally:
            self._parts.leases.release([item.lease])

    def _report(self, item: Item, error: LithifyError) -> None:
        """Reports an error; where that fails, the process is to end."""
        try:
            what = LEASES if isinstance(error, CoordinationError) else self.target
            self._parts.reporter.outage(what, error)
        except Exception as report_error:
            self._parts.stop.fail(as_lithify_error(report_error, "its events cannot be written"))

    def _note_end(self, item: Item, caught_up: bool | None) -> None:
        key = item.key
        del self._running[key]
        if caught_up:
            self._seen[key] = (_asked(item.definition), self._tokens[key])
            self.behind_ms.pop(key, None)
            self.outcome.caught_up.add(key)
            self.outcome.failed.discard(key)
            if item.positions is not None and item.positions.error is not None:
                self.outcome.without_positions.add(key)
            elif item.positions is not None and item.positions.is_copied:
                self.outcome.without_positions.discard(key)
        elif caught_up is not None:
            self.outcome.failed.add(key)

    def _drop_unwanted(self, wanted: set[Key]) -> None:
        """Forgets topics that no replica has any more."""
        self._groups.keep(wanted)
        with self._changed:
            self.outcome.caught_up &= wanted
            self.outcome.failed &= wanted
            self.outcome.without_positions &= wanted
            for known in (self._seen, self._tokens, self.behind_ms):
                for key in [key for key in known if key not in wanted and key not in self._running]:
                    del known[key]


def _is_one_of(target_scopes: Collection[str], scope: WarehouseScope) -> bool:
    """Whether definitions name that warehouse: by its place where they are older than its identity."""
    return all(named in (scope.name, scope.where) for named in target_scopes)


def _asked(definition: ReplicaDefinition) -> Asked:
    return definition.created_ms, definition.compact


def _behind_since_ms(noted: TopicProgress | None, now_ms: int) -> int:
    """As an earlier daemon noted it, or from now on."""
    return now_ms if noted is None or noted.behind_since_ms is None else noted.behind_since_ms
