"""The newest version of a topic, for callers that need it once for each of many partitions."""

from __future__ import annotations

from collections.abc import Callable

from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse

RECENT_MS = 1_000
"""As long as a tail takes at most to see an append: nothing is seen later for it."""


class Newest:
    """Loads the newest version of one topic, and remembers it for a moment. `check` may refuse what was loaded."""

    def __init__(
        self, warehouse: Warehouse, name: TopicName, check: Callable[[TopicState], None] = lambda _: None
    ) -> None:
        self._warehouse, self._name, self._check = warehouse, name, check
        self._last: tuple[TopicState, int] | None = None

    def load(self) -> TopicState:
        """The newest version now. Raises what `LogStore.load` and the check raise."""
        asked_ms = self._warehouse.clock.monotonic_ms()
        state = self._warehouse.store.load(self._name)
        self._check(state)
        self._last = state, asked_ms
        return state

    def recent(self) -> TopicState:
        """The version that was the newest within the last `RECENT_MS`."""
        if self._last is not None and self._warehouse.clock.monotonic_ms() - self._last[1] < RECENT_MS:
            return self._last[0]
        return self.load()
