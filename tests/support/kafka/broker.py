"""A real Kafka broker of our own: its jars come from Maven's repository, its data lies in a folder of its own.

One process in KRaft's combined mode, broker and controller, on 127.0.0.1, which others may join. It can be ended in
the hard way and started again on the same port and data. Its log cleaner is quick, and is held and released topic by
topic with `min.cleanable.dirty.ratio`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from filelock import FileLock

from lithify.spark.session.java import find_java
from support.kafka.jars import JARS, Module, fetched
from support.processes.class_archive import options
from support.servers.tcp_proxy import TcpProxy, a_proxy, free_port, takes_connections, wait_until

VERSION = "4.3.1"
MODULES = (
    Module("org.apache.kafka", "kafka_2.13", VERSION),
    Module("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),  # or it logs nothing
)
ARCHIVE = JARS / f"kafka-{VERSION}.jsa"
"""Of its classes; see `support/processes/class_archive.py`."""
CLUSTER_ID = "bGl0aGlmeS10ZXN0cy0wMQ"
START_S = 90.0
STOP_S = 30.0
CALL_S = 30.0
QUIET = {"log_level": 0}
"""For clients of a broker that is stopped and restarted: silences what they log of that."""

SETTINGS = {  # one that was killed is taken in again once its session is over
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "file.delete.delay.ms": "500",
}
LOGGING = """
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
"""


class KafkaBroker:
    """A broker. Topics are for one test each."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        jvm: Sequence[str] | None = None,
        proxied: tuple[int, str] | None = None,
        joins: KafkaBroker | None = None,
    ) -> None:
        """`proxied` is one more port, and the address of the proxy in front of it; `joins` has the controller.

        In `settings` `{port}` and `{controller}` stand for its ports.
        """
        self.folder, self._jvm = folder, options(ARCHIVE) if jvm is None else jvm
        self.port = free_port()
        self._controller_port: int = free_port() if joins is None else joins._controller_port
        self._log = folder / "broker.log"
        self._logging = folder / "log4j2.properties"
        self._logging.write_text(LOGGING)
        self._properties = folder / "server.properties"
        self._topics = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: AdminClient | None = None
        listeners = advertised = f"PLAINTEXT://127.0.0.1:{self.port}"
        if proxied is not None:
            listeners += f",PROXIED://127.0.0.1:{proxied[0]}"
            advertised += f",PROXIED://{proxied[1]}"
        if joins is None:
            listeners += f",CONTROLLER://127.0.0.1:{self._controller_port}"
        every = {
            **SETTINGS,
            "process.roles": "broker,controller" if joins is None else "broker",
            "listeners": listeners,
            "advertised.listeners": advertised,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.data),
            **(settings or {}),
        }
        text = "".join(f"{name}={value}\n" for name, value in every.items())
        ports = {"{port}": self.port, "{controller}": self._controller_port}
        for name, port in ports.items():
            text = text.replace(name, str(port))
        self._properties.write_text(text)
        self._format(every["node.id"])
        self.start()

    @property
    def data(self) -> Path:
        """Where its logs are, a folder for each partition."""
        return self.folder / "data"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        self._process = self._spawn("kafka.Kafka", str(self._properties))
        wait_until(self._answers, "the broker does not start", START_S)

    def stop(self) -> None:
        """In order, or in the hard way where that takes too long."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=STOP_S)
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=STOP_S)
            self._process = None

    def admin(self) -> AdminClient:
        """One for all calls: what it is asked for fails once it is gone."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.address, **QUIET})
        return self._admin

    def make_topic(
        self, partitions: int = 1, name: str | None = None, nodes: Sequence[int] = (1,), **config: str
    ) -> str:
        """By name. `nodes` have the replicas, the first of them leads. In `config` a `_` stands for a `.`."""
        self._topics += 1
        topic = name or f"topic{self._topics}"
        own = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, partitions, replica_assignment=[list(nodes)] * partitions, config=own)
        self.admin().create_topics([new])[topic].result(timeout=CALL_S)
        wait_until(lambda: topic in self.admin().list_topics(timeout=CALL_S).topics, f"{topic} is not there", CALL_S)
        return topic

    def delete_topic(self, topic: str) -> None:
        self.admin().delete_topics([topic])[topic].result(timeout=CALL_S)
        wait_until(lambda: topic not in self.admin().list_topics(timeout=CALL_S).topics, f"{topic} stays", CALL_S)

    def add_partitions(self, topic: str, partitions: int) -> None:
        """So that there are so many."""
        (done,) = self.admin().create_partitions([NewPartitions(topic, partitions)]).values()
        done.result(timeout=CALL_S)

    def alter_topic(self, topic: str, **config: str) -> None:
        change = AlterConfigOpType.SET
        entries = [ConfigEntry(k.replace("_", "."), v, incremental_operation=change) for k, v in config.items()]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        (done,) = self.admin().incremental_alter_configs([resource]).values()
        done.result(timeout=CALL_S)

    def producer(self, **config: Any) -> Producer:
        """With `acks=all`; in `config` a `_` stands for a `.`."""
        own = {key.replace("_", "."): value for key, value in config.items()}
        return Producer({"bootstrap.servers": self.address, "acks": "all", "linger.ms": 5, **QUIET, **own})

    def log_start_and_end(self, topic: str, partition: int = 0, *, committed: bool = False) -> tuple[int, int]:
        """The log start offset, and the high watermark or, for committed readers, the last stable offset."""
        level = "read_committed" if committed else "read_uncommitted"
        config = {"bootstrap.servers": self.address, "group.id": "none", "isolation.level": level, **QUIET}
        with closed(Consumer(config)) as consumer:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=CALL_S)
            return int(low), int(high)

    def _format(self, node: str) -> None:
        """As Kafka's tool does it, for a node of this cluster; what that has made is kept as jars are."""
        kept = JARS / f"kafka-{VERSION}-node{node}"
        with FileLock(f"{kept}.lock"):
            if not kept.exists():
                tool = self._spawn("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties))
                assert tool.wait(timeout=START_S) == 0, self._log.read_text()
                with tempfile.TemporaryDirectory(dir=JARS) as scratch:  # whole or not at all
                    Path(shutil.move(self.data, scratch)).rename(kept)
        shutil.copytree(kept, self.data)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-5000:]
        with suppress(KafkaException):
            return takes_connections(self.port) and bool(self.admin().list_topics(timeout=2).brokers)
        return False

    def _spawn(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        jars = fetched(f"kafka-{VERSION}", MODULES)
        command = [str(find_java().executable), "-Xmx512m", *self._jvm, f"-Dlog4j2.configurationFile={self._logging}"]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*command, "-cp", f"{jars}/*", main, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                start_new_session=True,
            )


@contextmanager
def closed(consumer: Consumer) -> Iterator[Consumer]:
    """`consumer`, closed at the end."""
    try:
        yield consumer
    finally:
        consumer.close()


def read_all(
    broker: KafkaBroker,
    topic: str,
    partition: int = 0,
    *,
    committed: bool = True,
    start: int | None = None,
    group: str = "none",
) -> list[Any]:
    """Every message of a partition that a reader gets, up to its end; from `OFFSET_STORED` on that of a group."""
    config = {
        "bootstrap.servers": broker.address,
        "group.id": group,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        **QUIET,
    }
    found = []
    with closed(Consumer(config)) as consumer:
        first = broker.log_start_and_end(topic, partition)[0] if start is None else start
        consumer.assign([TopicPartition(topic, partition, first)])
        while True:
            message = consumer.poll(CALL_S)
            assert message is not None, f"{topic}[{partition}]: the end does not come"
            if message.error() is None:
                found.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise KafkaException(message.error())


@contextmanager
def a_broker(jvm: Sequence[str] | None = None, **settings: str) -> Iterator[KafkaBroker]:
    """In `settings` a `_` stands for a `.`. What is measured wants `jvm=()`, a JVM as it comes."""
    with tempfile.TemporaryDirectory(prefix="kafka") as folder:
        broker = KafkaBroker(Path(folder), {key.replace("_", "."): value for key, value in settings.items()}, jvm)
        try:
            yield broker
        finally:
            broker.kill()  # what it has goes with it


@contextmanager
def a_broker_behind_a_proxy() -> Iterator[tuple[KafkaBroker, TcpProxy]]:
    """Clients that come by the proxy's address stay behind it; those of the tests come by its own."""
    port, seldom = free_port(), {"log.cleaner.backoff.ms": "300"}  # with hundreds of topics each look costs
    with tempfile.TemporaryDirectory(prefix="kafka") as folder, a_proxy("127.0.0.1", port) as proxy:
        broker = KafkaBroker(Path(folder), seldom, proxied=(port, proxy.address))
        try:
            yield broker, proxy
        finally:
            broker.kill()  # what it has goes with it
