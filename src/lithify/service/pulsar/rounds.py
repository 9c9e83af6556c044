"""A round of a live topic, and the plan of one (C54, C55).

    for each partition   begin
    together             write the views
    for each partition   publish ─► end

A partition that fails leaves the others alone. One that has nothing new is left as it is, and starts no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from lithify.errors import BrokerError, LithifyError, RoundAbandonedError
from lithify.errors.defects import as_lithify_error
from lithify.ports.engine import COMMIT, Progress, RunLimits
from lithify.ports.pulsar.pulsar_cluster import PulsarCluster
from lithify.ports.pulsar.views import ViewRules, WrittenView
from lithify.reports.pulsar.rounds import PartitionPlan, TopicRoundPlan, TopicRoundReport
from lithify.service.pulsar.holding import lost
from lithify.service.pulsar.partition_round import PartitionRound, RoundPorts, place_of
from lithify.service.pulsar.planning import plan_round


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """What is to be compacted, and by which rules: those that are None are the broker's.

    `skip_damaged`: batches that their producers wrote damaged remain whole (C74).
    """

    topic: str
    retain_null_key: bool | None = None
    order: str | None = None
    limits: RunLimits = RunLimits()
    skip_damaged: bool = False


def compact_topic(ports: RoundPorts, request: RoundRequest, progress: Progress) -> TopicRoundReport:
    """One round. Errors of a partition are in its report.

    Raises what the cluster raises if nothing can begin, and `RoundAbandonedError` if `progress` does.
    """
    began_ms, run_id = ports.clock.monotonic_ms(), ports.clock.new_id()
    names = ports.cluster.partitions(request.topic)
    notes, rules = _notes(ports.cluster, request.topic), _rules(ports.cluster, request)
    partitions = [PartitionRound(ports, number, name) for number, name in names.items()]
    with ExitStack() as holds:
        for one in partitions:
            one.begin(holds)
        planned = [one for one in partitions if one.view is not None]
        written = _written(ports, request, rules, run_id, planned, progress)
        if planned:
            progress(COMMIT, 0, len(planned))
        for one in planned:
            one.publish(written[one.name])
        for one in partitions:
            one.end()
    took_ms = ports.clock.monotonic_ms() - began_ms
    notes += tuple(note for one in partitions for note in one.notes)
    return TopicRoundReport(request.topic, tuple(one.report for one in partitions), took_ms, run_id, notes)


def plan_topic(cluster: PulsarCluster, topic: str) -> TopicRoundPlan:
    """What a round would do now. Changes nothing; it does not try whether the subscriptions are free."""
    names = cluster.partitions(topic)
    plans = tuple(_partition_plan(cluster, number, name) for number, name in names.items())
    return TopicRoundPlan(topic, plans, _notes(cluster, topic))


def _partition_plan(cluster: PulsarCluster, number: int, name: str) -> PartitionPlan:
    try:
        plan = plan_round(name, cluster.look(name))
    except LithifyError as error:
        return PartitionPlan(number, error=str(error), error_code=error.code)
    look, view = plan.look, plan.view
    horizon = place_of(None if look.view is None else look.horizon)
    return PartitionPlan(
        number,
        compacted_ledger=look.view,
        horizon=horizon,
        horizon_after=horizon if view is None else place_of(view.horizon),
        view_entries=plan.view_entries,
        new_entries=plan.new_entries,
        bytes_read_at_most=plan.read_bytes,
        bytes_written_at_most=plan.written_bytes,
        idle=view is None,
    )


def _written(
    ports: RoundPorts,
    request: RoundRequest,
    rules: ViewRules,
    run_id: str,
    planned: Sequence[PartitionRound],
    progress: Progress,
) -> Mapping[str, WrittenView | LithifyError]:
    """By partition, its view or its error. An error of the engine is an error of every partition."""

    def watched(phase: str, done: int, total: int) -> None:
        if not any(one.is_held for one in planned):
            raise lost(request.topic)
        progress(phase, done, total)

    views = [one.view for one in planned if one.view is not None]
    try:
        return ports.engine.write(views, rules, request.limits, run_id, watched)
    except RoundAbandonedError:
        raise
    except Exception as error:
        return dict.fromkeys((one.name for one in planned), as_lithify_error(error, request.topic))


def _notes(cluster: PulsarCluster, topic: str) -> tuple[str, ...]:
    try:
        threshold = cluster.automatic_threshold_bytes(topic)
    except BrokerError as error:
        return (f"it is unknown whether brokers compact {topic} themselves: {error.message}",)
    if not threshold:
        return ()
    return (
        f"brokers compact {topic} themselves at a backlog of {threshold} bytes; they cannot during a round, and a "
        "round cannot while they do: set its compaction threshold to 0 to leave it to Lithify",
    )


def _rules(cluster: PulsarCluster, request: RoundRequest) -> ViewRules:
    if request.retain_null_key is not None and request.order is not None:
        return ViewRules(request.retain_null_key, request.order, request.skip_damaged)
    own = cluster.view_rules()
    retains = own.retain_null_key if request.retain_null_key is None else request.retain_null_key
    return ViewRules(retains, request.order or own.order, request.skip_damaged)
