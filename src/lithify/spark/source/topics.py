"""What the data source needs of a warehouse. `lithify.spark_source` binds it to the services.

Everything is called on the driver, but for `why_missing`, and `state` where a batch goes to several
topics. A `Connect` travels to tasks, and opens the warehouse there only if it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from lithify.columnar.files.access import FileAccess
from lithify.errors import LithifyError
from lithify.model.log import TopicState, WrittenBatch
from lithify.model.names import TopicName
from lithify.model.scan import Bound, Offsets, ScanSettings, ScanTask, Subscription
from lithify.model.staged import StagedLog


class Topics(Protocol):
    """The topics of a warehouse."""

    @property
    def access(self) -> FileAccess:
        """How tasks open files."""
        ...

    def now_ms(self) -> int: ...
    def new_id(self) -> str: ...
    def state(self, name: TopicName) -> TopicState:
        """Raises `UnknownTopicError`."""
        ...

    def subscribed(self, subscription: Subscription) -> tuple[TopicState, ...]:
        """Raises `UnknownTopicError` for a topic that is listed and not there."""
        ...

    def offsets_at(
        self, states: Iterable[TopicState], bound: Bound, settings: ScanSettings
    ) -> dict[str, dict[int, int]]:
        """Raises `OffsetOutOfRangeError` or `RefusedError`."""
        ...

    def plan_tasks(
        self, states: Iterable[TopicState], start: Offsets, end: Offsets, settings: ScanSettings
    ) -> tuple[ScanTask, ...]:
        """Tasks for what the logs have of [start, end)."""
        ...

    def why_missing(self, task: ScanTask, path: str) -> LithifyError | None:
        """The error for a file that went with its version; None if it should be there."""
        ...

    def append_staged(self, topic: TopicName, logs: Sequence[StagedLog], batch: WrittenBatch | None) -> TopicState:
        """One commit; a batch that is there already changes nothing."""
        ...


Connect = Callable[[], Topics]
"""Opens the warehouse. Pickles."""
