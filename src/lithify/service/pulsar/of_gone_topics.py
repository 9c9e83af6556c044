"""Ledgers of views that rounds left for topics that were deleted later: no round finds them any more (C55).

    all ledgers that rounds made ─► BookKeeper has no ledger of the topic itself ─► the cluster does not find the topic

Both are asked after the list. A topic that is not there then has nothing that could serve a ledger of the list, and one
that is made later begins without a view. BookKeeper is asked as well since the topic may be one of another cluster that
shares it, or the admin interface may be that of another cluster.
"""

from __future__ import annotations

from lithify.errors import UnknownSourceError
from lithify.ports.pulsar.cluster import PulsarCluster
from lithify.reports.pulsar.leftovers import LeftLedger, LeftoversReport
from lithify.service.pulsar.leftovers import OpenViewLedgers


def leftovers_of_gone_topics(cluster: PulsarCluster, open_ledgers: OpenViewLedgers, *, delete: bool) -> LeftoversReport:
    """Lists or deletes them. Raises `BrokerError`, also where it may not be asked for one of the topics."""
    with open_ledgers() as ledgers:
        made = ledgers.of_rounds()
        names = {one.partition for one in made}
        gone = {name for name in sorted(names - ledgers.with_messages(names)) if _is_gone(cluster, name)}
        left = tuple(LeftLedger(one.ledger, one.partition, one.run_id) for one in made if one.partition in gone)
        if delete:
            for one in left:
                ledgers.delete(one.ledger)
    return LeftoversReport(left, deleted=delete)


def _is_gone(cluster: PulsarCluster, partition: str) -> bool:
    try:
        cluster.partitions(partition)
    except UnknownSourceError:
        return True
    return False
