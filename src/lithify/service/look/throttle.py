"""Changes the rates of a topic's running rounds, or of all cleaners' (C40).

A round follows the document that comes after its own start, or the start of its cleaner; see
`model/settings/rates.py`. There is no commit and no version.
"""

from __future__ import annotations

from lithify.model.names import TopicName
from lithify.model.settings.rates import Rates, RatesDocument, RatesReport
from lithify.ports.store import Warehouse
from lithify.service.documents import put_rates


def throttle(warehouse: Warehouse, name: TopicName | None, rates: Rates) -> RatesReport:
    """Stores `rates` for the rounds of a topic, or without one for the rounds of the running cleaners.

    Raises `UnknownTopicError` or `WarehouseError`.
    """
    state = None if name is None else warehouse.store.load(name)
    document = RatesDocument(warehouse.clock.new_id(), rates)
    put_rates(warehouse.store, state, document)
    return RatesReport(None if name is None else str(name), document.id, rates.read_rate_bytes, rates.write_rate_bytes)
