"""The Python API of a lake, which holds topics.

Its methods return what the verbs of the command line print, as typed values with `to_json()`. They import what they
alone need, so that a program that lists topics does not load replicas and groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lithify.api.ingests import LakeIngests
from lithify.api.limits import DEFAULT_TASK_MEMORY, run_limits
from lithify.api.stream import Stream
from lithify.api.topic import Topic
from lithify.api.wiring import (
    cleaner_loop,
    coordination_of,
    machine,
    open_warehouse,
    status_watch,
    with_groups,
)
from lithify.api.wiring.scopes import scope_of
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.daemons.cleaner.cleaner_options import (
    INTERVAL_MS,
    LEASE_MS,
    SWEEP_INTERVAL_MS,
    CleanerOptions,
    EventListener,
)
from lithify.model.names import in_order, parse_stream, parse_topic
from lithify.model.settings.topic_settings import preset
from lithify.reports.report import Reports
from lithify.service.change.streams import create_stream
from lithify.service.change.topics import delete_topic
from lithify.service.cleaner_rates import with_rates_of_cleaners
from lithify.service.creation import check_known, create_topic
from lithify.service.look.status import TellFailure, topic_infos
from lithify.service.look.streams import all_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lithify.api.gateways.standing_jobs import LakeStandingJobs
    from lithify.api.gateways.tokens import LakeTokens
    from lithify.api.groups import Group
    from lithify.api.replicas import LakeReplicas
    from lithify.daemons.cleaner.loop import Loop
    from lithify.reports.groups import GroupInfo
    from lithify.reports.overview import CatalogOverview
    from lithify.reports.streams import StreamInfo
    from lithify.reports.topics import TopicInfo
    from lithify.service.look.overview import StatusWatch


@dataclass(frozen=True, slots=True, repr=False)
class Lake(LakeIngests):
    """A warehouse of topics. Made by `lithify.open`."""

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        like: str = "kafka",
        config: Mapping[str, object] | None = None,
    ) -> Topic:
        """Creates a topic with the settings of a preset (`kafka`, `pulsar`, `mapr`), overridden by `config`.

        The others it inherits from its stream, and the number of partitions, if none is given (C56). Raises
        `TopicExistsError`, `InvalidSettingError` or `InvalidNameError`.
        """
        reference = parse_topic(name)
        create_topic(self.warehouse, reference, {**preset(like), **(config or {})}, partitions)
        return Topic(self.warehouse, reference.name)

    def topic(self, name: str) -> Topic:
        """The topic of that name; it need not exist if its stream creates it at the first append (`autocreate`).

        Raises `UnknownTopicError`, with the nearest name, or `InvalidNameError`.
        """
        topic = Topic(self.warehouse, parse_topic(name).name)
        check_known(self.warehouse.store, topic.topic_name)
        return topic

    def create_stream(self, name: str, config: Mapping[str, object] | None = None) -> Stream:
        """Creates a stream with attributes that its topics inherit.

        Raises `InvalidSettingError`, `RefusedError` or `InvalidNameError`.
        """
        stream = parse_stream(name)
        create_stream(self.warehouse, stream, config or {})
        return Stream(self.warehouse, stream)

    def stream(self, name: str) -> Stream:
        """The stream of that name. Raises `UnknownStreamError` or `InvalidNameError`."""
        stream = Stream(self.warehouse, parse_stream(name))
        self.warehouse.store.stream_topics(stream.namespace)
        return stream

    def streams(self) -> Reports[StreamInfo]:
        """All streams by name, with their attributes and the numbers of their topics."""
        return Reports(all_streams(self.warehouse))

    def topics(self) -> tuple[Topic, ...]:
        """All topics, by stream and name."""
        return tuple(Topic(self.warehouse, name) for name in sorted(self.warehouse.store.topics(), key=in_order))

    def topic_infos(self, failed: TellFailure | None = None) -> Reports[TopicInfo]:
        """`Topic.info` of all topics; their streams are read once.

        A topic that cannot be read raises its error. With `failed`, this function is called with its name and the error
        instead, and the other topics are returned.
        """
        return Reports(topic_infos(self.warehouse, failed))

    def status(self, *, now_ms: int | None = None) -> CatalogOverview:
        """The state of every topic, by its worst log, the worst first. Reads metadata only.

        A topic that cannot be read is one of them. Raises `WarehouseError` if the catalog cannot be read.
        """
        return self.watch().overview(now_ms=now_ms)

    def watch(self) -> StatusWatch:
        """For one thread that asks for the `status` again and again: later looks read only what has changed."""
        return status_watch(self.warehouse)

    def cleaner(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        *,
        threads: int = 1,
        interval_ms: int = INTERVAL_MS,
        cleaner_id: str | None = None,
        coordination_url: str | None = None,
        lease_ms: int = LEASE_MS,
        sweep_interval_ms: int = SWEEP_INTERVAL_MS,
        task_memory: int | str = DEFAULT_TASK_MEMORY,
        read_rate: int | str | None = None,
        write_rate: int | str | None = None,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        tell: EventListener = lambda _event: None,
    ) -> Loop:
        """A cleaner of all topics, whose `run` runs until `stop.ask` is called.

        `tell` is called with every event. Positions of groups are read from the database of leases. Raises
        `CoordinationError` if that cannot be used.
        """
        limits = run_limits(task_memory, read_rate, write_rate)
        options = CleanerOptions(
            cleaner_id=cleaner_id or machine(),
            scope=scope_of(self.warehouse, makes=True).name,
            threads=threads,
            interval_ms=interval_ms,
            lease_ms=lease_ms,
            sweep_interval_ms=sweep_interval_ms,
            limits=replace(with_rates_of_cleaners(self.warehouse.store, limits), sharing=threads),
        )
        coordination = coordination_of(self.warehouse, coordination_url)
        warehouse = self.warehouse if coordination_url is None else with_groups(self.warehouse, coordination_url)
        return cleaner_loop(warehouse, SparkChoice(spark, spark_conf or {}), options, coordination, tell)

    def groups(self, *, coordination_url: str | None = None) -> Reports[GroupInfo]:
        """All consumer groups, in the database at the URL, `$LITHIFY_COORDINATION_URL` or the catalog's own.

        Raises `RefusedError` if there is no database, `CoordinationError` if it cannot be used.
        """
        from lithify.api.groups import all_groups

        return all_groups(self.warehouse, coordination_url)

    def group(self, name: str, *, coordination_url: str | None = None) -> Group:
        """The consumer group of that name. Raises `UnknownGroupError`, and what `groups` raises."""
        from lithify.api.groups import known_group

        return known_group(self.warehouse, name, coordination_url)

    def replicas(self, *, coordination_url: str | None = None) -> LakeReplicas:
        """The replicas of its topics in other warehouses, in the database that `groups` uses."""
        from lithify.api.replicas import LakeReplicas

        return LakeReplicas(self.warehouse, coordination_url)

    def standing_jobs(self, *, coordination_url: str | None = None) -> LakeStandingJobs:
        """The command lines that gateways run all the time, or again and again; in the database that `groups` uses."""
        from lithify.api.gateways.standing_jobs import LakeStandingJobs

        return LakeStandingJobs(self.warehouse, coordination_url)

    def tokens(self, *, coordination_url: str | None = None) -> LakeTokens:
        """The tokens with which its gateways are asked, in the database that `groups` uses."""
        from lithify.api.gateways.tokens import LakeTokens

        return LakeTokens(self.warehouse, coordination_url)

    def delete_topic(self, name: str) -> tuple[str, ...]:
        """Deletes a topic and its files, irreversibly; returns files of other programs in its folder, which it does not
        delete.

        Raises `UnknownTopicError`, `RefusedError` if its folder has commits that the catalog does not have (C45), or
        `ConflictError` if it was recreated meanwhile.
        """
        return delete_topic(self.warehouse, parse_topic(name))


def open_lake(warehouse: str | None = None, *, catalog: str | None = None) -> Lake:
    """A lake at a directory or URI, by default `./lithify-warehouse`, or behind a catalog. Raises `WarehouseError`."""
    return Lake(open_warehouse(warehouse, catalog))
