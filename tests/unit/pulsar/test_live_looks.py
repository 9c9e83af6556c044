"""What is known of a live partition is of one moment, though it takes several calls (C55)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig
from lithify.pulsar.live import live_cluster as live
from lithify.pulsar.live.live_cluster import LiveCluster
from lithify.service.pulsar.planning import plan_round

TOPIC = "persistent://t/n/states"
FULL = 20


@dataclass
class GrowingTopic:
    """A topic in which more than a ledger is written between any two calls."""

    entries: int = 10
    calls: list[str] = field(default_factory=list)

    def asked(self, call: str) -> None:
        self.calls.append(call)
        self.entries += 30

    def internal_stats(self, _topic: str) -> dict[str, Any]:
        self.asked("statistics")
        full, current = divmod(self.entries, FULL)
        ledgers = [{"ledgerId": number, "entries": FULL, "size": FULL} for number in range(full)]
        return {
            "ledgers": [*ledgers, {"ledgerId": full, "entries": 0, "size": 0}],
            "currentLedgerEntries": current,
            "currentLedgerSize": current,
            "compactedLedger": {"ledgerId": -1, "entries": -1, "size": -1},
            "cursors": {},
        }

    def last_id(self, _topic: str) -> MessageId:
        self.asked("last message")
        return MessageId(*divmod(self.entries - 1, FULL))


def test_a_round_reads_all_entries_up_to_its_end_while_ledgers_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """C55: or they were in no view, and skipped by the next round."""
    topic = GrowingTopic()
    monkeypatch.setattr(live, "Admin", lambda _config: topic)
    monkeypatch.setattr(live, "Cluster", lambda _config: topic)
    view = plan_round(TOPIC, LiveCluster(ClientConfig("pulsar://h:1", "http://h:2")).look(TOPIC)).view
    assert topic.calls == ["last message", "statistics"]
    assert view is not None
    (entries,) = view.ranges
    assert (entries.start, entries.end) == (MessageId(0, 0), view.horizon)
    assert entries.size_bytes == view.horizon.ledger * FULL + view.horizon.entry + 1
