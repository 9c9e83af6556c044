"""Views of Pulsar's topics: what a compaction leaves of one, Pulsar's compacted ledger.

    ViewEngine ──► a new view, in a ledger of its own; publishes nothing
    ViewLedgers ──► ledgers of views that nobody published

Topics are named by their partitions, each of which is a topic of its own for Pulsar.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lithify.errors import LithifyError
from lithify.model.message import MessageId
from lithify.ports.engine import Progress, RunLimits


@dataclass(frozen=True, slots=True)
class ServedView:
    """The view that a broker serves: its ledger, and how many entries that has by what the broker says."""

    ledger: int
    entries: int


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Whole entries that are read together: from `start` (None: the first one) to `end`, both inclusive.

    `view`: they are all of this view, as readers of the compacted topic get them; None: of the topic itself.
    """

    start: MessageId | None
    end: MessageId
    size_bytes: int
    view: ServedView | None = None

    @property
    def compacted(self) -> bool:
        return self.view is not None


@dataclass(frozen=True, slots=True)
class ViewRules:
    """`retain_null_key` is the broker's `topicCompactionRetainNullKey`; `order` is "publish" or "event-time".

    `skip_damaged`: a batch that its producer wrote damaged remains whole, instead of failing the round (C74).
    """

    retain_null_key: bool = False
    order: str = "publish"
    skip_damaged: bool = False


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A view to write: one partition's from these entries, in order, up to `horizon`.

    `small_entries`: there are many and small ones, of which a broker sends few in a second.
    """

    partition: str
    ranges: tuple[EntryRange, ...]
    horizon: MessageId
    small_entries: bool = False


@dataclass(frozen=True, slots=True)
class WrittenView:
    """A view in a closed ledger that has no readers yet. Bytes count entries as brokers store them.

    `sole`: no other attempt to write it can have left a ledger. `damaged_named` are the first of the damaged entries
    that it has whole.
    """

    ledger: int
    messages_in: int
    messages_out: int
    entries_in: int
    entries_out: int
    bytes_in: int
    bytes_out: int
    sole: bool = True
    damaged_entries: int = 0
    damaged_named: tuple[str, ...] = ()


class ViewEngine(Protocol):
    """Writes views; publishes none."""

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        """By partition, the view written or what went wrong with that one. Raises `EngineError`, or what
        `progress` raises."""
        ...


@dataclass(frozen=True, slots=True)
class ViewLedger:
    """A ledger that was made for a view; `run_id` is None if Lithify did not make it."""

    ledger: int
    run_id: str | None


@dataclass(frozen=True, slots=True)
class RoundLedger:
    """A ledger that a round of Lithify made for a view of a partition up to an entry."""

    ledger: int
    partition: str
    run_id: str
    horizon: MessageId


class ViewLedgers(Protocol):
    """The ledgers of views in BookKeeper. Calls raise `BrokerError`."""

    def newer_than(self, partition: str, ledger: int) -> tuple[ViewLedger, ...]:
        """Ledgers of views of a partition with a higher id."""
        ...

    def of_rounds(self) -> tuple[RoundLedger, ...]:
        """All that rounds of Lithify made and that are there, of any partition."""
        ...

    def with_messages(self, partitions: Collection[str]) -> frozenset[str]:
        """Which of the partitions have ledgers of their own here, in whatever cluster; or a name of no partition."""
        ...

    def delete(self, ledger: int) -> None:
        """Deletes a ledger; if there is none, it succeeds."""
        ...
