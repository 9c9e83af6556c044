"""Other rates for the rounds of a topic that are under way (C40). No commit, no version.

A round follows the document that comes after its own start; see `model/rates.py`.
"""

from __future__ import annotations

from lithify.model.names import TopicName
from lithify.model.rates import Rates, RatesDocument, RatesReport
from lithify.ports import Warehouse


def throttle(warehouse: Warehouse, name: TopicName, rates: Rates) -> RatesReport:
    """Stores `rates` for the rounds under way. Raises `UnknownTopicError` or `WarehouseError`."""
    state = warehouse.store.load(name)
    document = RatesDocument(warehouse.clock.new_id(), rates)
    warehouse.store.put_rates(state, document.to_json())
    return RatesReport(str(name), document.id, rates.read_rate_bytes, rates.write_rate_bytes)
