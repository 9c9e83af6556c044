"""Topics with replicas on two brokers of a real cluster, and what becomes of them when brokers go down.

node 1: controller, and where clients begin        nodes 2 and 3: the replicas; 2 leads
hand over:  2 is stopped in order, 3 leads         a clean change: nothing is lost
lose:       3 is killed, 2 comes back and leads    unclean: what only 3 had is lost
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from confluent_kafka.admin import PartitionMetadata

from support.kafka.broker import START_S, KafkaBroker, a_broker
from support.servers.tcp_proxy import wait_until

NODES = (2, 3)
SOON = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
"""So that the controller notices soon that a broker is gone."""
UNCLEAN = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}


@dataclass(frozen=True, slots=True)
class Replicas:
    """The brokers; `first` has none of the replicas."""

    first: KafkaBroker
    two: KafkaBroker
    three: KafkaBroker

    def make_topic(self, **config: str) -> str:
        topic = self.first.make_topic(nodes=NODES, **UNCLEAN, **config)
        wait_until(lambda: self._in_sync(topic) == {*NODES}, f"{topic} has no replicas", START_S)
        return topic

    def hand_over(self, topics: Sequence[str]) -> None:
        """A clean change of all leaders."""
        assert all(self._in_sync(topic) == {*NODES} for topic in topics)
        self.two.stop()
        self._led_by(3, topics)

    def lose(self, topics: Sequence[str]) -> None:
        """What was produced since `hand_over`."""
        self.three.kill()
        self.two.start()
        self._led_by(2, topics)

    def _led_by(self, node: int, topics: Sequence[str]) -> None:
        def led() -> bool:
            return all(found is not None and found.leader == node for found in map(self._partition, topics))

        wait_until(led, f"{node} does not lead", START_S)

    def _in_sync(self, topic: str) -> set[int]:
        partition = self._partition(topic)
        return set() if partition is None else {*partition.isrs}

    def _partition(self, topic: str) -> PartitionMetadata | None:
        """None from a broker that has not heard of it yet."""
        return self.first.admin().list_topics(topic, timeout=START_S).topics[topic].partitions.get(0)


@contextmanager
def replicas_on_two_brokers() -> Iterator[Replicas]:
    with a_broker(**{name.replace(".", "_"): value for name, value in SOON.items()}) as first, ExitStack() as down:

        def joined(node: int) -> KafkaBroker:
            folder = first.folder / f"node{node}"
            folder.mkdir()
            broker = KafkaBroker(folder, {"node.id": str(node), **SOON}, joins=first)
            down.callback(broker.kill)
            return broker

        with ThreadPoolExecutor(len(NODES)) as at_once:
            two, three = at_once.map(joined, NODES)
        yield Replicas(first, two, three)
