"""Publishes a compacted topic into a Kafka topic, unchanged, each record exactly once (C1).

    lake   records ──► transaction: records + cursor ──► Kafka
                            becomes visible as a whole, or not at all

The transaction with the records also stores the cursor, as the offset of a consumer group for this topic and
this target. A run after a crash continues there, and the target has only the records. Before that the run
checks that the target has no other records after the last published one.

A continuous run looks for new versions of the topic. If the cluster is away it waits, and connects again as a run
after a crash does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lithify.errors import BrokerError, UnknownSourceError
from lithify.kafka.publisher.group_offsets import GroupOffset
from lithify.kafka.publisher.reports import PublishReport, TranslatedPosition
from lithify.kafka.publisher.session import Published, Session, open_session
from lithify.kafka.publisher.target import Target, Wanted
from lithify.kafka.publisher.translated_groups import Groups, summary
from lithify.kafka.pulse import Pulse, Retries
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.first_look import ASKED_S, asking, look_at
from lithify.model.topic.state import TopicState
from lithify.ports.source import StopAsked
from lithify.ports.topic import OpenTopic
from lithify.service.documents import source_of
from lithify.service.snapshot.consumer_narration import WAIT_S, KafkaNote, Narration, TellNote
from lithify.service.snapshot.cursors import check_continues

if TYPE_CHECKING:
    from lithify.api.groups import Group


def publish(  # noqa: PLR0913 - the flags of the verb, by name
    topic: OpenTopic,
    conf: Mapping[str, Any],
    to: str,
    *,
    config: Mapping[str, str] | None = None,
    replication_factor: int | None = None,
    groups: Sequence[GroupOffset] = (),
    commits_groups: bool = True,
    checkpoints: str | None = None,
    timeout_s: float = 30.0,
    continuous: bool = False,
    interval_ms: int = 1_000,
    tell: Callable[[int], None] = lambda _records: None,
    notes: TellNote = lambda _note: None,
    stops: Callable[[], bool] = lambda: False,
) -> PublishReport:
    """Publishes the newest version of `topic`, its compacted view if it has one, into the Kafka topic `to`.

    Same partition, key, value, timestamp and headers, in order; offsets are the target's own. A missing
    target is created with the topic's settings. The settings of the Kafka topic that it is a copy of override them, and
    `config` overrides both; a value "" leaves out a setting that the copied topic had. Call it again after a crash, or
    for new records: it continues after the last one.
    `conf` is by Java's names, or librdkafka's, with `bootstrap.servers`; `tell` gets the records of every transaction.

    `groups` are positions in the topic that it is a copy of, or in the lake if it is not a copy. Once everything is
    published, they are translated into positions in the target, and committed for groups without members that have
    none there; not without `commits_groups`. With `checkpoints`, an alias of the source, they are also written into
    its topic of MirrorMaker 2's checkpoints.

    With `continuous` it looks for new records every `interval_ms`, and waits where the cluster does not answer.
    It ends once `stops()`, after the transaction under way. `notes` gets all other notes, from a thread of its own
    about outages.

    Raises `BrokerError`, `ConnectorError`, or

    - `RefusedError` for a target that cannot take the records unchanged or has others,
    - `InvalidRecordError` for a record that Kafka cannot take,
    - `LogTruncatedError` if it cannot continue what is in the target,
    - `ConflictError` if another run publishes the same.
    """
    wanted = Wanted.given(to, config or {}, replication_factor)
    asked = Groups(tuple(groups), commits_groups, checkpoints)
    chosen = asked.of_topic(source_name(topic), topic.state().partitions) if groups else asked
    run = _Run(topic, wanted, Cluster(conf, timeout_s, stops), interval_ms, tell, notes, chosen)
    return run.run(conf, continuous=continuous)


def source_name(topic: OpenTopic) -> str:
    """The topic as positions of groups name it: Kafka's that it is a copy of, or itself."""
    copied = source_of(topic.warehouse.store, topic.state())
    return topic.name if copied is None else copied.name


def group_offsets(topic: OpenTopic, group: Group) -> tuple[GroupOffset, ...]:
    """The positions of a group of the lake, for `publish`.

    Raises `UnknownTopicError` if it has none, and `LogTruncatedError` if it cannot continue.
    """
    positions = group.positions(topic.name)
    state, name = topic.state(), source_name(topic)
    for position in positions:
        check_continues(position.cursor, state, position.log.partition)
    return tuple(GroupOffset(p.group, name, p.log.partition, p.cursor.offset) for p in positions)


@dataclass(slots=True)
class _Run:
    topic: OpenTopic
    wanted: Wanted
    cluster: Cluster
    interval_ms: int
    tell: Callable[[int], None]
    notes: TellNote
    groups: Groups
    narration: Narration = field(init=False)
    published: Published = field(default_factory=dict)
    created: bool = False
    config: Mapping[str, str] = field(default_factory=dict)
    resumed: bool | None = None
    """None before it has asked the target."""
    placed: tuple[TranslatedPosition, ...] | None = None
    """None before the positions of groups are translated."""

    @property
    def to(self) -> str:
        return self.wanted.to

    def __post_init__(self) -> None:
        self.narration = Narration(self.topic.name, self.to, "published", self.topic.warehouse.clock, self.notes)

    def run(self, conf: Mapping[str, Any], *, continuous: bool) -> PublishReport:
        clock, stops = self.topic.warehouse.clock, self.cluster.stops
        begun_ms = clock.monotonic_ms()
        state = self.topic.state()
        with suppress(StopAsked):
            self._look_first(conf)
            with Pulse(conf, self.to, clock, self.notes) as pulse:
                retries = Retries(pulse, continuous, clock, stops)
                while not stops():
                    try:
                        state = self._connected(self.topic.state(), retries)
                        if not continuous and self.published:
                            break
                    except BrokerError as error:
                        retries.after(error)
        duration_ms = clock.monotonic_ms() - begun_ms
        logs = tuple(log for _, log in sorted(self.published.items()))
        done = self.created, self.config, bool(self.resumed), logs, duration_ms
        return PublishReport(self.topic.name, state.version, self.to, *done, self.placed or ())

    def _look_first(self, conf: Mapping[str, Any]) -> None:
        cluster = Cluster(conf, min(ASKED_S, self.cluster.timeout_s), self.cluster.stops)
        self.notes(KafkaNote("asking", asking(cluster)))
        with suppress(UnknownSourceError):  # it is created, or its name is refused
            look_at(cluster, self.to)
            cluster.check_may_write(self.to)

    def _connected(self, state: TopicState, retries: Retries) -> TopicState:
        """Publishes that version, and with `continuous` later ones, until one is of another shape; returns the last."""
        session = open_session(self.topic.warehouse, self.cluster, state, self.wanted, self.published)
        session.exact_at = self.groups.exact_at
        with closing(session):
            if self.resumed is None:
                self.created, self.resumed = session.target.created, bool(session.stored)
                self._tell_created(session.target)
            begun, state = (state.identity, state.partitions), session.state
            self.narration.begins(session.progress(state), new=not session.stored)
            while (state.identity, state.partitions) == begun:
                tell = partial(self._tell_progress, session, state)
                session.publish(state, tell)
                self._place_groups(session)
                retries.succeeded()
                if not retries.continuous or self.cluster.stops():
                    break
                self.narration.waiting(partial(session.progress, state))
                state = self._next(state, tell)
            return state

    def _place_groups(self, session: Session) -> None:
        """Once, when everything is published: what comes later is what groups have not read."""
        if self.placed is not None or not self.groups.positions or self.cluster.stops():
            return
        maps = {partition: stored.map for partition, stored in session.stored.items()}
        self.placed = self.groups.placed(self.cluster, self.wanted, maps)
        text = f"{self.topic.name} → {self.to}: {summary(self.placed)}"
        self.notes(KafkaNote("groups", text, self.topic.name, self.to))

    def _tell_created(self, target: Target) -> None:
        self.config = target.config
        if target.created:
            how = ", ".join(f"{name}={value}" for name, value in sorted(target.config.items()))
            groups = "are translated" if self.groups.positions else "of another cluster are not valid in it"
            text = f"created with {how}; its offsets are new: positions of groups {groups}"
            self.notes(KafkaNote("created", f"{self.topic.name} → {self.to}: {text}", self.topic.name, self.to))

    def _tell_progress(self, session: Session, state: TopicState, records: int) -> None:
        if records:
            self.tell(records)
        self.narration.progress(records, partial(session.progress, state))

    def _next(self, state: TopicState, tell: Callable[[int], None]) -> TopicState:
        """The next version, once there is one, or this one if everything is to end."""
        clock, newest = self.topic.warehouse.clock, state
        while newest == state and not self.cluster.stops():  # a restored catalog gives numbers of versions once more
            until_ms = clock.monotonic_ms() + self.interval_ms
            while not self.cluster.stops() and (left_ms := until_ms - clock.monotonic_ms()) > 0:
                clock.sleep(min(WAIT_S, left_ms / 1000))
            tell(0)
            newest = self.topic.state()
        return newest
