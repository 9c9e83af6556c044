"""A real Pulsar of our own on 127.0.0.1: ZooKeeper in one process, bookie and broker in another.

    folder/zookeeper    its data; folder/bookie has the ledgers
    folder/*.log        what the two say

The ports stay, so it can be ended in the hard way and started again on the same data. Nothing happens by
itself: the broker compacts when it is told to, trims nothing, and deletes no idle topic.

    PYTHONPATH=tests python -m support.pulsar.server      runs one until it is interrupted
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from lithify.spark.session.java import find_java
from support.processes.class_archive import options
from support.processes.programs import SHORT_LIVED
from support.pulsar.jars import broker_archive, pulsar_jars
from support.pulsar.timers import coarse_timers
from support.servers.tcp_proxy import free_port, takes_connections, wait_until

START_S = 120.0
STOP_S = 60.0
CALL_S = 30.0
LOST = re.compile("Couldn't register bookie with zookeeper, shutting down|ERROR Failed to start pulsar service")
"""Said by bookie or broker where ZooKeeper ends the session of the killed one in the moment in which it starts."""

SETTINGS = {
    "clusterName": "standalone",
    "advertisedAddress": "127.0.0.1",
    "bindAddress": "127.0.0.1",
    "loadBalancerEnabled": "false",
    "defaultNumberOfNamespaceBundles": "1",
    "numIOThreads": "2",
    "numHttpServerThreads": "8",
    "managedLedgerCacheSizeMB": "64",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "metadataStoreSessionTimeoutMillis": "10000",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "brokerServiceCompactionMonitorIntervalInSeconds": "86400",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
    "allowAutoTopicCreation": "false",
    # Of the bookie, which reads the same file.
    "allowEphemeralPorts": "true",
    "listeningInterface": "lo",
    "allowLoopback": "true",
    "journalSyncData": "false",
    "nettyMaxFrameSizeBytes": "5253120",  # as in Pulsar's own; the default lets a chunk of 5 MiB cut the bookie off
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
    "zkTimeout": "10000",
}
"""Overridden by those that a test gives."""

ZOOKEEPER = """
tickTime=1000
maxClientCnxns=0
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=srvr
"""
LOGGING = """
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n%throwable
"""
OPENED = ("io", "lang", "lang.reflect", "net", "nio", "time", "util", "util.zip")
JVM = (
    "-Djava.net.preferIPv4Stack=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dbookkeeper.metadata.bookie.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver",
    "-Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED),
    *(
        f"--add-opens=java.base/{name}=ALL-UNNAMED"
        for name in ("jdk.internal.misc", "jdk.internal.platform", "sun.net")
    ),
    "--add-opens=java.management/sun.management=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
)


class PulsarServer:
    """A cluster of one broker. Topics are for one test each."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, jvm: Sequence[str] | None = None
    ) -> None:
        """`settings` are those of `standalone.conf`, `jvm` the options of the broker's JVM."""
        self.folder, self._jvm = folder, jvm
        self.port, self.admin_port = free_port(), free_port()
        self._zookeeper_port, self._bookie_port = free_port(), free_port()
        self._topics = 0
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._broker: subprocess.Popen[bytes] | None = None
        self._headers: dict[str, str] = {}
        (folder / "log4j2.properties").write_text(LOGGING)
        _written(folder / "zoo.cfg", {"clientPort": str(self._zookeeper_port), "dataDir": str(folder / "zookeeper")})
        with (folder / "zoo.cfg").open("a") as file:
            file.write(ZOOKEEPER)
        every = {
            **SETTINGS,
            "brokerServicePort": str(self.port),
            "webServicePort": str(self.admin_port),
            "metadataStoreUrl": self.metadata_url,
            "configurationMetadataStoreUrl": self.metadata_url,
            **(settings or {}),
        }
        _written(folder / "standalone.conf", every)

    @property
    def service_url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}"

    @property
    def metadata_url(self) -> str:
        return f"zk:127.0.0.1:{self._zookeeper_port}"

    @property
    def is_running(self) -> bool:
        return self._broker is not None and self._broker.poll() is None

    @property
    def log(self) -> str:
        """What bookie and broker have said."""
        return (self.folder / "broker.log").read_text(errors="replace")

    def start(self, tries: int = 2) -> None:
        """Returns when it takes requests, with a bookie."""
        usual = options(broker_archive())
        if self._zookeeper is None:
            own = usual if self._jvm is None else SHORT_LIVED
            arguments = ("org.apache.zookeeper.server.ZooKeeperServerMain", str(self.folder / "zoo.cfg"))
            self._zookeeper = self._spawn("zookeeper", *own, "-Xmx128m", *arguments)
            wait_until(lambda: takes_connections(self._zookeeper_port), "ZooKeeper does not start", START_S)
        self._broker = self._spawn(
            "broker",
            *("-Xmx512m", "-XX:MaxDirectMemorySize=384m"),
            *(usual if self._jvm is None else self._jvm),
            *JVM,
            "org.apache.pulsar.PulsarStandaloneStarter",
            *("--config", str(self.folder / "standalone.conf"), "--metadata-url", self.metadata_url),
            *("--num-bookies", "1", "--no-functions-worker", "--no-stream-storage"),
            *("--bookkeeper-dir", str(self.folder / "bookie"), "--bookkeeper-port", str(self._bookie_port)),
        )
        before = len(LOST.findall(self.log))
        wait_until(lambda: len(LOST.findall(self.log)) > before or self._answers(), "no broker starts", START_S)
        if len(LOST.findall(self.log)) > before:
            assert tries > 1, self.log[-5000:]
            self.kill(broker_only=True)
            self.start(tries - 1)

    def stop(self, within_s: float = STOP_S) -> None:
        """In order, or in the hard way where that takes too long."""
        for process in (self._broker, self._zookeeper):
            if process is not None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=within_s)
        self.kill()

    def kill(self, *, broker_only: bool = False) -> None:
        """Ends bookie and broker with SIGKILL, and ZooKeeper too unless `broker_only`."""
        for process in (self._broker, None if broker_only else self._zookeeper):
            if process is not None:
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=STOP_S)
        self._broker = None
        self._zookeeper = self._zookeeper if broker_only else None

    def admin(self, method: str, path: str, **more: Any) -> requests.Response:
        """Asks the admin interface: `path` is what follows `/admin/v2/`. Fails unless it succeeds."""
        url = f"{self.admin_url}/admin/v2/{path}"
        answer = requests.request(method, url, timeout=CALL_S, headers=self._headers, **more)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    def speak_as(self, token: str) -> None:
        """With this token to the admin interface from now on."""
        self._headers = {"Authorization": f"Bearer {token}"}

    def make_topic(self, partitions: int = 0, name: str | None = None, namespace: str = "public/default") -> str:
        """By its whole name; 0 partitions make one that is not partitioned."""
        self._topics += 1
        path = f"{namespace}/{name or f'topic{self._topics}'}"
        if partitions:
            self.admin("PUT", f"persistent/{path}/partitions", json=partitions)
        else:
            self.admin("PUT", f"persistent/{path}")
        return f"persistent://{path}"

    def make_namespace(self, name: str, **policies: object) -> str:
        """`policies` as in Pulsar's REST interface, such as `retention_policies`."""
        self.admin("PUT", f"namespaces/public/{name}", json={"bundles": {"numBundles": 1}, **policies})
        return f"public/{name}"

    def unload(self, topic: str) -> None:
        """Closes the topic, whose ledger ends with that; the next client opens it again."""
        self.admin("PUT", f"{_path(topic)}/unload")

    def compact(self, topic: str) -> None:
        """Pulsar's own compaction of a topic that is not partitioned, or of one partition, and not empty.

        Returns when readers get its ledger: the broker acknowledges it some time after the compaction has ended.
        """
        before = self.compacted_ledger(topic)
        self.admin("PUT", f"{_path(topic)}/compaction")

        def ended() -> bool:
            status = self.admin("GET", f"{_path(topic)}/compaction").json()
            assert status["status"] != "ERROR", status
            return bool(status["status"] == "SUCCESS") and self.compacted_ledger(topic) != before

        wait_until(ended, f"{topic}: the compaction does not end", START_S)

    def compacted_ledger(self, topic: str) -> int | None:
        """The ledger that is in force for readers of the compacted view."""
        found = self.internal_stats(topic)["compactedLedger"]["ledgerId"]
        return None if found < 0 else int(found)

    def internal_stats(self, topic: str) -> dict[str, Any]:
        stats = self.admin("GET", f"{_path(topic)}/internalStats").json()
        assert isinstance(stats, dict)
        return stats

    def _answers(self) -> bool:
        assert self._broker is not None and self._broker.poll() is None, self.log[-5000:]
        with suppress(requests.RequestException, AssertionError):
            self.admin("GET", "brokers/ready")
            namespaces = self.admin("GET", "namespaces/public").json()
            return "public/default" in namespaces and takes_connections(self.port)
        return False

    def _spawn(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(find_java().executable), "-cp", f"{pulsar_jars()}/*"]
        command += [f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}", *arguments]
        with (self.folder / f"{name}.log").open("ab") as log, coarse_timers(self._jvm is None):
            return subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True
            )


def _written(file: Path, settings: Mapping[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


def _path(topic: str) -> str:
    return topic.replace("://", "/")


@contextmanager
def a_pulsar(jvm: Sequence[str] | None = None, **settings: str) -> Iterator[PulsarServer]:
    """Started. What is measured wants `jvm=()`, a broker's JVM as it comes, or with other options than the tests'."""
    with tempfile.TemporaryDirectory(prefix="pulsar") as folder:
        server = PulsarServer(Path(folder), settings, jvm)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def main() -> None:
    """Runs one, with its output where this program's goes, until it gets SIGINT or SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with a_pulsar() as server:
        print(f"service URL   {server.service_url}\nadmin URL     {server.admin_url}")
        print(f"metadata      {server.metadata_url}\nfolder        {server.folder}")
        print(f"jars          {pulsar_jars()}", flush=True)
        ended.wait()


if __name__ == "__main__":
    sys.exit(main())
