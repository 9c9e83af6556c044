"""The Python API of live Pulsar topics.

    from lithify.api.pulsar import LiveTopic, client_config

    topic = LiveTopic("persistent://shop/orders/states", client_config("pulsar://broker:6650", "http://broker:8080"))
    report = topic.compact(jars="/opt/pulsar/lib")

Its methods return what the verbs of the command line print, as typed values with `to_json()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.api.limits import DEFAULT_TASK_MEMORY, Size, run_limits
from lithify.api.wiring import BookKeeperChoice, pulsar_ports, pulsar_view_ledgers
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.errors import UnknownSourceError
from lithify.model.message import MessagePosition
from lithify.ports.engine import START_SPARK, Progress
from lithify.pulsar.client import OUTAGE_S, ClientConfig, conf_of
from lithify.pulsar.live.live_cluster import LiveCluster
from lithify.pulsar.live.live_positions import LivePositions
from lithify.reports.pulsar.leftovers import LeftoversReport
from lithify.reports.pulsar.rounds import TopicRoundPlan, TopicRoundReport, UncompactReport
from lithify.service.pulsar import left_ledgers as service
from lithify.service.pulsar.rounds import RoundRequest, compact_topic, plan_topic
from lithify.service.pulsar.uncompact import uncompact_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def client_config(
    service_url: str = "",
    admin_url: str = "",
    conf: Mapping[str, str] | str | PathLike[str] | None = None,
    *,
    outage_s: float = OUTAGE_S,
) -> ClientConfig:
    """How to reach a cluster; `conf` is Pulsar's `client.conf`: the path of the file, or its names and values.

    `outage_s` is how long a broker that is away is waited for, before a `BrokerError`. A single answer is waited for
    no longer than that either, and at most 30 seconds. Raises `InvalidSettingError`.
    """
    given = conf if conf is None or isinstance(conf, Mapping) else conf_of(Path(conf))
    return ClientConfig.of(service_url, admin_url, given).waiting(outage_s)


def left_ledgers(
    config: ClientConfig, *, delete: bool = False, jars: str | None = None, metadata_url: str | None = None
) -> LeftoversReport:
    """Ledgers that rounds left and no round finds any more: their topic or its `__compaction` was deleted later (C55).

    With `metadata_url` only ledgers of deleted topics. Pulsar's jars are needed, as for `compact`. Raises
    `ConnectorError` or `BrokerError`.
    """
    ledgers = pulsar_view_ledgers(config, jars, metadata_url)
    return service.left_ledgers(LiveCluster(config), ledgers, delete=delete, living=metadata_url is None)


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A topic of a cluster, or one partition of it."""

    name: str
    config: ClientConfig

    def plan(self) -> TopicRoundPlan:
        """What a round would do now, without doing it. Raises `UnknownSourceError` or `BrokerError`."""
        return plan_topic(LiveCluster(self.config), self.name)

    def last_message_position(self, partition: int = 0, *, compacted: bool = False) -> MessagePosition:
        """The last message (PIP-429), `EARLIEST` if there is none; of an encrypted batch the last one in it.

        `compacted`: of those that a reader of the compacted topic gets. Needs the admin URL.
        """
        return LivePositions(self.config, self._partition(partition)).last(compacted=compacted)

    def find_by_publish_time(
        self, publish_time_ms: int, partition: int = 0, *, compacted: bool = False
    ) -> MessagePosition | None:
        """The first message that was published at or after a time (PIP-429), or None. Needs the admin URL."""
        return LivePositions(self.config, self._partition(partition)).published_at(publish_time_ms, compacted=compacted)

    def _partition(self, number: int) -> str:
        """Raises `UnknownSourceError`."""
        names = LiveCluster(self.config).partitions(self.name)
        if number not in names:
            raise UnknownSourceError(
                f"{self.name} has no partition {number}", hint=f"its partitions are {', '.join(map(str, names))}"
            )
        return names[number]

    def uncompact(self, *, jars: str | None = None, metadata_url: str | None = None) -> UncompactReport:
        """Drops the views of all partitions. What brokers have trimmed since is lost with them.

        Pulsar's jars, as for `compact`, are needed only for partitions in which a killed round left a ledger.
        """
        ledgers = pulsar_view_ledgers(self.config, jars, metadata_url)
        return uncompact_topic(LiveCluster(self.config), ledgers, self.name)

    def compact(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        *,
        retain_null_key: bool | None = None,
        order: str | None = None,
        skip_damaged: bool = False,
        jars: str | None = None,
        metadata_url: str | None = None,
        replication: tuple[int, int, int] | None = None,
        task_memory: Size = DEFAULT_TASK_MEMORY,
        read_rate: Size | None = None,
        write_rate: Size | None = None,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        progress: Progress = lambda _phase, _done, _total: None,
    ) -> TopicRoundReport:
        """A round of all partitions (C54, C55). A partition that fails has its error in the report.

        A rule of None has the broker's value. With `skip_damaged`, batches that their producers wrote damaged remain
        whole and are listed in the report, instead of failing the round (C74). `jars` is a folder with Pulsar's jars,
        by default `$LITHIFY_PULSAR_JARS`. Raises `ConnectorError`, `UnknownSourceError`, `BrokerError` or
        `RefusedError` if nothing can begin.
        """
        limits = run_limits(task_memory, read_rate, write_rate)
        request = RoundRequest(self.name, retain_null_key, order, limits, skip_damaged)
        choice = SparkChoice(spark, spark_conf or {}, partial(progress, START_SPARK))
        ports = pulsar_ports(self.config, choice, jars, BookKeeperChoice(metadata_url, replication))
        return compact_topic(ports, request, progress)
