"""Drops the views of a live topic, so that the next round starts from what the topic still has."""

from __future__ import annotations

from lithify.errors import LithifyError
from lithify.ports.pulsar.cluster import PulsarCluster
from lithify.reports.pulsar.rounds import DroppedView, UncompactReport


def uncompact_topic(cluster: PulsarCluster, topic: str) -> UncompactReport:
    """Drops the view of every partition. Raises what the cluster raises where nothing can begin."""
    names = cluster.partitions(topic)
    return UncompactReport(topic, tuple(_dropped(cluster, number, name) for number, name in names.items()))


def _dropped(cluster: PulsarCluster, number: int, name: str) -> DroppedView:
    try:
        return DroppedView(number, cluster.drop_view(name))
    except LithifyError as error:
        return DroppedView(number, False, str(error))
