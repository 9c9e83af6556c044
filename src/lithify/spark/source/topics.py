"""The port from the data source to a warehouse. `lithify.spark_source` implements it by the services.

The driver calls all methods; tasks call only `why_missing`, and `state` for a batch with several topics. A
`Connect` is serialised to tasks, and opens the warehouse there only when called.
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
        """Raises `UnknownTopicError` for a listed topic that does not exist."""
        ...

    def offsets_at(
        self, states: Iterable[TopicState], bound: Bound, settings: ScanSettings
    ) -> dict[str, dict[int, int]]:
        """Raises `OffsetOutOfRangeError` or `RefusedError`."""
        ...

    def plan_tasks(
        self, states: Iterable[TopicState], start: Offsets, end: Offsets, settings: ScanSettings
    ) -> tuple[ScanTask, ...]:
        """Tasks for the records of the logs in [start, end)."""
        ...

    def why_missing(self, task: ScanTask, path: str) -> LithifyError | None:
        """The error for a file deleted with its expired version; None if the file should exist."""
        ...

    def append_staged(self, topic: TopicName, logs: Sequence[StagedLog], batch: WrittenBatch | None) -> TopicState:
        """Appends in one commit; does nothing for a batch that was appended before."""
        ...


Connect = Callable[[], Topics]
"""Opens the warehouse. Can be pickled."""
