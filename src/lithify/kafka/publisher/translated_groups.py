"""Positions of consumer groups in the target: translated, and committed where a group has none there yet.

    position in the source ─► map of offsets ─► committed, unless the group has one, or has members

A translated position is never later than the right one: a group may read records again, but skips none. The brokers
refuse a position for a group that has members, so none is moved under a consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from lithify.errors import BrokerError, RefusedError
from lithify.kafka.publisher.checkpoints import put_checkpoints
from lithify.kafka.publisher.group_offsets import GroupOffset
from lithify.kafka.publisher.offset_map import OffsetMap
from lithify.kafka.publisher.reports import PositionState, TranslatedPosition
from lithify.kafka.publisher.target import Wanted
from lithify.kafka_client.client import Cluster, client
from lithify.model.settings.units import plural


@dataclass(frozen=True, slots=True)
class Groups:
    """The positions to translate, of one topic of the source, and what else is to become of them.

    `commits`: they are committed. `checkpoints`: the alias of the source under which they are written as MirrorMaker 2
    does.
    """

    positions: tuple[GroupOffset, ...] = ()
    commits: bool = True
    checkpoints: str | None = None

    def of_topic(self, topic: str, partitions: range) -> Groups:
        """The groups of one topic. Raises `RefusedError` if it has none, or one of a partition without a copy."""
        positions = sorted(position for position in self.positions if position.topic == topic)
        if self.positions and not positions:
            topics = sorted({position.topic for position in self.positions})
            raise RefusedError(
                f"no position is in {topic}, the topic that is published; the positions are in "
                f"{', '.join(topics[:10])}",
                hint=f"write the topic in the positions as {topic}",
            )
        for position in positions:
            if position.partition not in partitions:
                raise RefusedError(
                    f"{position.group} has a position in {topic}-{position.partition}, which was not copied",
                    hint=f"remove positions in partitions from {len(partitions)} on",
                )
        return replace(self, positions=tuple(positions))

    @property
    def exact_at(self) -> Mapping[int, Sequence[int]]:
        """By partition, the offsets that are to be translated."""
        exact_at: dict[int, set[int]] = {}
        for position in self.positions:
            exact_at.setdefault(position.partition, set()).add(position.offset)
        return {partition: sorted(offsets) for partition, offsets in exact_at.items()}

    def placed(self, cluster: Cluster, target: Wanted, maps: Mapping[int, OffsetMap]) -> tuple[TranslatedPosition, ...]:
        """Translates all, and commits them. Raises `BrokerError`; what was committed before remains."""
        to = target.to
        with cluster.asking() as asking:
            starts = {p: cluster.ends(asking, to, p)[0] for p in {position.partition for position in self.positions}}
        positions = [translated(p, maps.get(p.partition, OffsetMap()), starts[p.partition]) for p in self.positions]
        if self.checkpoints is not None:
            put_checkpoints(cluster, self.checkpoints, target, positions)
        if not self.commits:
            return tuple(positions)
        groups = groupby(positions, attrgetter("group"))
        return tuple(p for _, some in groups for p in _AtTarget(cluster, to).placed(tuple(some)))


def translated(position: GroupOffset, known: OffsetMap, log_start: int) -> TranslatedPosition:
    """Not below the target's log start, from where Kafka's `auto.offset.reset` might take a group to the end."""
    there = known.translate(position.offset)
    offset = max(there.offset, log_start)
    again = max(0, there.offset + there.again - offset)
    return TranslatedPosition(position.group, position.partition, position.offset, offset, again, "translated")


def summary(positions: Iterable[TranslatedPosition]) -> str:
    """`3 positions of groups: 2 committed, 1 kept`."""
    states = [position.state for position in positions]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return f"{plural(len(states), 'position')} of groups: {counts}"


@dataclass(frozen=True, slots=True)
class _AtTarget:
    """The groups of the target's cluster."""

    cluster: Cluster
    to: str

    def placed(self, positions: tuple[TranslatedPosition, ...]) -> tuple[TranslatedPosition, ...]:
        """The positions of one group, each with what became of it."""
        group = positions[0].group
        there = self._committed(group, [position.partition for position in positions])
        missing = [position for position in positions if position.partition not in there]
        state: PositionState = "committed" if not missing or self._commit(group, missing) else "active"
        return tuple(_after(position, there.get(position.partition), state) for position in positions)

    def _committed(self, group: str, partitions: Sequence[int]) -> dict[int, int]:
        where = [client().TopicPartition(self.to, partition) for partition in partitions]
        asked, admin = client().ConsumerGroupTopicPartitions(group, where), self.cluster.kept_admin()
        offsets = admin.list_consumer_group_offsets([asked], request_timeout=self.cluster.timeout_s)
        return {p.partition: p.offset for p in self._answered(group, offsets[group]) if p.offset >= 0}

    def _commit(self, group: str, positions: Sequence[TranslatedPosition]) -> bool:
        """Whether the group has them now: not where it has members."""
        where = [client().TopicPartition(self.to, position.partition, position.offset) for position in positions]
        asked, admin = client().ConsumerGroupTopicPartitions(group, where), self.cluster.kept_admin()
        offsets = admin.alter_consumer_group_offsets([asked], request_timeout=self.cluster.timeout_s)
        try:
            self._answered(group, offsets[group])
        except client().KafkaException as error:
            k = client().KafkaError
            if error.args[0].code() in (k.UNKNOWN_MEMBER_ID, k.ILLEGAL_GENERATION, k.STALE_MEMBER_EPOCH):
                return False
            raise self.cluster.named(error.args[0], self.to) from error
        return True

    def _answered(self, group: str, asked: Any) -> Sequence[Any]:
        """Raises `KafkaException` also for a failure of a single partition."""
        k = client().KafkaError
        try:
            partitions: Sequence[Any] = self.cluster.answer(asked).topic_partitions
            for partition in partitions:
                if partition.error is not None:
                    raise client().KafkaException(partition.error)
        except client().KafkaException as error:
            failure = error.args[0]
            if failure.code() in (k.GROUP_AUTHORIZATION_FAILED, k.TOPIC_AUTHORIZATION_FAILED):
                hint = f"give this user the right to Read the group {group} and the topic {self.to}"
                raise BrokerError(self.cluster.named(failure, self.to).message, hint=hint) from error
            raise
        return partitions


def _after(position: TranslatedPosition, offset: int | None, state: PositionState) -> TranslatedPosition:
    if offset is None:
        return replace(position, state=state)
    if offset == position.offset:
        return replace(position, state="committed")
    return replace(position, state="kept", found=offset)
