"""The round of one partition, except the writing of its view, which the engine does for all at once (C54, C55).

    begin     hold the subscription ─► look ─► plan ─► note that ledgers may be left behind
    publish   ask the broker to serve the view ─► see that it does
    end       delete leftovers ─► note that there are none

Whatever goes wrong is the partition's error; nothing more is done to it but to delete what it left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from lithify.errors import LithifyError, UnknownOutcomeError
from lithify.errors.defects import as_lithify_error
from lithify.model.message import MessageId
from lithify.ports.clock import Clock
from lithify.ports.pulsar.pulsar_cluster import Hold, PulsarCluster, TopicLook
from lithify.ports.pulsar.views import PlannedView, ViewEngine, WrittenView
from lithify.reports.pulsar.damaged import kept_whole
from lithify.reports.pulsar.rounds import EntryPlace, PartitionReport
from lithify.service.pulsar.holding import holding, lost
from lithify.service.pulsar.leftovers import Leftovers, OpenViewLedgers
from lithify.service.pulsar.planning import plan_round
from lithify.service.pulsar.view_publisher import NeverServed, Publisher


@dataclass(frozen=True, slots=True)
class RoundPorts:
    """What a round works on."""

    cluster: PulsarCluster
    engine: ViewEngine
    open_ledgers: OpenViewLedgers
    clock: Clock


class PartitionRound:
    """One partition during a round. `name` is the partition's as a topic."""

    def __init__(self, ports: RoundPorts, number: int, name: str) -> None:
        self.name = name
        self.report = PartitionReport(number)
        self.view: PlannedView | None = None
        """The view to write; None if nothing is new, or after an error."""
        self.notes: list[str] = []
        """Notes for the reader of the report, which are not errors."""
        self._cluster = ports.cluster
        self._leftovers = Leftovers(ports.cluster, ports.open_ledgers)
        self._publisher = Publisher(ports.cluster, ports.clock)
        self._hold: Hold | None = None
        self._since: int | None = None
        """The newest ledger that is not a leftover; None if there is no leftover."""
        self._has_leftovers = self._may_leave_more = self._is_unknown = False

    @property
    def is_held(self) -> bool:
        return self._hold is not None and self._hold.is_open

    def begin(self, holds: ExitStack) -> None:
        """Takes the subscription, which `holds` releases, and plans the view."""
        with self._failing():
            self._hold = holds.enter_context(holding(self._cluster, self.name, self.notes.append))
            look = self._cluster.look(self.name)
            self._since, self._has_leftovers = look.unsettled, look.unsettled is not None
            self._describe(look)
            plan = plan_round(self.name, look)
            if plan.view is not None:
                self._since = self._leftovers.note(self.name, look)
                self.view = plan.view

    def publish(self, written: WrittenView | LithifyError) -> None:
        """Has the view served, if there is one."""
        with self._failing():
            if isinstance(written, LithifyError):
                self._may_leave_more = True
                raise written
            assert self.view is not None and self._hold is not None  # it was to be written
            self._may_leave_more = not written.sole
            if not self._hold.is_confirmed():
                self._leftovers.delete_one(written.ledger)  # the broker was not asked to serve it
                raise lost(self.name)
            try:
                outcome = self._publisher.publish(self.name, self._hold, self.view.horizon, written.ledger)
            except UnknownOutcomeError:
                self._is_unknown = True
                raise
            if isinstance(outcome, NeverServed):
                self._leftovers.delete_one(written.ledger)
                self.report = replace(self.report, ledgers_deleted=(written.ledger,))
                raise outcome.error
            self._describe(outcome)
            self.report = replace(
                self.report,
                messages_in=written.messages_in,
                messages_out=written.messages_out,
                entries_in=written.entries_in,
                entries_out=written.entries_out,
                bytes_in=written.bytes_in,
                bytes_out=written.bytes_out,
                changed=True,
                damaged_entries=written.damaged_entries,
                damaged_named=written.damaged_named,
            )
            if written.damaged_entries:
                self.notes.append(kept_whole(self.name, written.damaged_entries, written.damaged_named))

    def end(self) -> None:
        """Deletes leftovers, as long as the subscription is held."""
        hold = self._hold
        if self._since is None or self._is_unknown or hold is None or not hold.is_open:
            return
        with self._failing():
            if self._has_leftovers or self._may_leave_more or self.report.error is not None:
                deleted = self._leftovers.delete(self.name, hold, self._since)
                self.report = replace(self.report, ledgers_deleted=deleted)
            if not self._may_leave_more and self.report.error is None and hold.is_confirmed():
                self._leftovers.settled(self.name)

    def _describe(self, look: TopicLook) -> None:
        horizon = None if look.view is None else look.horizon
        self.report = replace(self.report, compacted_ledger=look.view, horizon=place_of(horizon))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Notes the first error as the partition's."""
        try:
            yield
        except Exception as error:
            self.view = None
            if self.report.error is None:
                failed = as_lithify_error(error, self.name)
                self.report = replace(self.report, error=str(failed), error_code=failed.code)


def place_of(entry: MessageId | None) -> EntryPlace | None:
    return None if entry is None else EntryPlace(entry.ledger, entry.entry)
