"""Tables in files that have the latest record of every live key of a topic (C6, C9).

from lithify.hydration import hydrate

hydrate(lake.topic("orders"), "shop.db")
"""

from lithify.hydration.from_lake import hydrate
from lithify.hydration.hydrating import HydrateReport

__all__ = ["HydrateReport", "hydrate"]
