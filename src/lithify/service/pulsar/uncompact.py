"""Drops the views of a live topic, so that the next round starts from what the topic still has (C55).

    delete leftovers of rounds that were killed ─► drop the subscription, with the view and the note of leftovers

That order, since nothing finds leftovers without the note. BookKeeper is connected to only where there is one.
"""

from __future__ import annotations

from lithify.errors import DamagedError, LithifyError
from lithify.ports.pulsar.pulsar_cluster import PulsarCluster
from lithify.reports.pulsar.rounds import DroppedView, UncompactReport
from lithify.service.pulsar.holding import holding, lost
from lithify.service.pulsar.leftovers import Leftovers, OpenViewLedgers


def uncompact_topic(cluster: PulsarCluster, open_ledgers: OpenViewLedgers, topic: str) -> UncompactReport:
    """Drops the view of every partition. Raises what the cluster raises if nothing can begin."""
    names, notes = cluster.partitions(topic), list[str]()
    leftovers = Leftovers(cluster, open_ledgers)
    dropped = tuple(_dropped(leftovers, number, name, notes) for number, name in names.items())
    return UncompactReport(topic, dropped, tuple(notes))


def _dropped(leftovers: Leftovers, number: int, name: str, notes: list[str]) -> DroppedView:
    try:
        since = leftovers.cluster.unsettled(name)
        if since is not None:
            _delete(leftovers, name, since, notes)
        return DroppedView(number, leftovers.cluster.drop_view(name))
    except LithifyError as error:
        return DroppedView(number, False, str(error), error.code)


def _delete(leftovers: Leftovers, name: str, since: int, notes: list[str]) -> None:
    with holding(leftovers.cluster, name, notes.append) as hold:
        try:
            leftovers.delete(name, hold, since)
            is_held = hold.is_confirmed()
        except DamagedError:  # the view is gone, and the broker does not confirm the subscription of such a topic
            is_held = hold.is_open
            if is_held:
                leftovers.delete_all(name, since)
        if not is_held:
            raise lost(name)
