"""The chore of a gateway that forgets the keys of old appends (C75)."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

import lithify
from lithify.api.wiring.appends import append_notes_of
from lithify.columnar.files.access import local_path
from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes
from lithify.daemons.stop import Stop
from lithify.errors import UnknownOutcomeError
from lithify.gateway.appends.appends import Appends
from lithify.gateway.appends.forgetting import LANDED_AT_ONCE
from lithify.gateway.appends.keys import AppendKey
from lithify.gateway.process import forgetting_keys
from lithify.gateway.process.forgetting_keys import ForgettingKeys
from lithify.model.record import Record
from lithify.model.topic.append_note import CLOCKS_DIFFER_MS, NOTES_KEPT_MS, AppendNote, AppendRun
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.testing import memory_lake


class Later:
    """The clock of a warehouse, two days later."""

    def __init__(self, clock):
        self._clock = clock

    def __getattr__(self, name):
        return getattr(self._clock, name)

    def now_ms(self):
        return self._clock.now_ms() + 2 * NOTES_KEPT_MS + 2 * CLOCKS_DIFFER_MS


def test_old_keys_are_forgotten_and_new_ones_are_not(tmp_path):
    lake = lithify.open(str(tmp_path))
    topic = lake.create_topic("orders")
    notes = append_notes_of(lake.warehouse, None)
    appends = Appends(lake.warehouse, notes)
    key = AppendKey.of("4711", b"a")
    appends.append(topic.topic_name, [Record(key=b"k", value=b"v")], key)
    ForgettingKeys(lake.warehouse, notes, Stop()).once()
    assert notes.find(topic.topic_name, ["4711"])
    later = replace(lake.warehouse, clock=Later(lake.warehouse.clock))
    ForgettingKeys(later, notes, Stop()).once()
    assert not notes.find(topic.topic_name, ["4711"])


class Moving:
    """The clock of a warehouse, and how far it, or time itself, has moved on."""

    def __init__(self, clock):
        self._clock = clock
        self.jumped_ms = self.passed_ms = 0

    def __getattr__(self, name):
        return getattr(self._clock, name)

    def now_ms(self):
        return self._clock.now_ms() + self.jumped_ms + self.passed_ms

    def monotonic_ms(self):
        return self._clock.monotonic_ms() + self.passed_ms


def test_a_clock_that_jumps_ahead_has_no_key_forgotten_or_refused(tmp_path):
    lake = lithify.open(str(tmp_path))
    name = lake.create_topic("orders").topic_name
    notes, clock = append_notes_of(lake.warehouse, None), Moving(lake.warehouse.clock)
    moved = replace(lake.warehouse, clock=clock)
    chore, records = ForgettingKeys(moved, notes, Stop()), [Record(key=b"k", value=b"v")]
    first = Appends(lake.warehouse, notes).append(name, records, AppendKey.of("4711", b"a"))
    clock.jumped_ms = 3 * NOTES_KEPT_MS
    chore.once()
    assert Appends(lake.warehouse, notes).append(name, records, AppendKey.of("4711", b"a")) == first
    Appends(lake.warehouse, notes).append(name, records, AppendKey.of("new", b"a"))
    clock.jumped_ms = -NOTES_KEPT_MS  # set right, by one that had been a day ahead
    chore.once()
    assert Appends(lake.warehouse, notes).append(name, records, AppendKey.of("4711", b"a")) == first
    clock.jumped_ms, clock.passed_ms = 3 * NOTES_KEPT_MS, NOTES_KEPT_MS + 2 * CLOCKS_DIFFER_MS
    chore.once()
    assert not notes.find(name, ["4711", "new"])


def test_a_clock_that_was_days_ahead_is_named_as_the_reason_and_its_mark_can_be_removed(tmp_path):
    lake = lithify.open(str(tmp_path))
    name = lake.create_topic("orders").topic_name
    notes = append_notes_of(lake.warehouse, None)
    records, key = [Record(key=b"k", value=b"v")], AppendKey.of("4711", b"a")
    ForgettingKeys(replace(lake.warehouse, clock=Later(lake.warehouse.clock)), notes, Stop()).once()
    with pytest.raises(UnknownOutcomeError, match="clock of a gateway is wrong by hours") as refused:
        Appends(lake.warehouse, notes).append(name, records, key)
    assert "lithify_append_floors" in refused.value.hint
    assert Appends(lake.warehouse, notes).append(name, records).records == 1
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        database.execute("DELETE FROM lithify_append_floors")
    database.close()
    again = SqlAppendNotes(notes._transactions, notes._scope)
    assert Appends(lake.warehouse, again).append(name, records, key).records == 1


def test_a_damaged_topic_does_not_keep_the_keys_of_others(tmp_path):
    lake = lithify.open(str(tmp_path))
    notes = append_notes_of(lake.warehouse, None)
    names = [lake.create_topic(name).topic_name for name in ("damaged", "orders")]
    for name in names:
        Appends(lake.warehouse, notes).append(name, [Record(key=b"k", value=b"v")], AppendKey.of("1", b"a"))
        notes.note(name, [AppendNote("2", "request", "chain", f"r {name}", "after", (), 0)], {}, AppendRun("none", 0))
    folder = Path(local_path(lake.topic("damaged").state().location)) / "metadata"
    for path in folder.glob("*.metadata.json"):
        path.write_bytes(b"{")
    FILE_CACHE.clear()
    ForgettingKeys(replace(lake.warehouse, clock=Later(lake.warehouse.clock)), notes, Stop()).once()
    left = {(name.topic, key) for name in names for key in notes.find(name, ["1", "2"])}
    assert left == {("damaged", "2")}


def test_each_time_is_bounded_and_ends_with_the_gateway(monkeypatch):
    calls = []
    monkeypatch.setattr(forgetting_keys, "forget_old", lambda *_: calls.append(1) or LANDED_AT_ONCE)
    stop = Stop()
    chore = ForgettingKeys(memory_lake().warehouse, None, stop)
    chore.once()
    assert len(calls) == forgetting_keys.CALLS
    stop.ask("it ends")
    chore.run()
    chore.once()
    assert len(calls) == forgetting_keys.CALLS + 1
