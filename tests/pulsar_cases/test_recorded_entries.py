"""Entries of a real Pulsar, byte by byte, and what its compactor made of them, against ours.

`entries/*.json` are the stored entries of a topic and of its compacted ledger; those of `data/*.json` are
rebuilt from what was sent. Where we differ from Pulsar's compactor on purpose, the test says why.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lithify.pulsar import compact_entries
from lithify.pulsar.format import codecs
from lithify.pulsar.format.batch import last_batch_index, messages_of_batch, value_of
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import framed, unframed, without_frame
from lithify.pulsar.format.kinds import can_be_opened, key_of
from pulsar_cases.recorded_case import RECORDED, RecordedCase, id_of
from support.pulsar.entries import Form, Sent, batch, single

ENTRIES = {path.stem: json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "entries").glob("*"))}

LOST = "encrypted_batch_loss"
"""Pulsar takes an encrypted batch for one message with the key of its first: k1 was lost with the batch of k0."""

CODECS = {"NONE": codecs.NONE, "LZ4": codecs.LZ4, "ZLIB": codecs.ZLIB, "ZSTD": codecs.ZSTD, "SNAPPY": codecs.SNAPPY}


def stored(entries: Iterable[Mapping[str, Any]]) -> list[RawEntry]:
    return [RawEntry(entry["ledger"], entry["entry"], b64decode(entry["data_b64"])) for entry in entries]


def view(case: str) -> list[RawEntry]:
    """The entries of the compacted ledger under their ids in the topic."""
    return [unframed(raw.data) for raw in stored(ENTRIES[case]["compacted"])]


@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_is_written_back_byte_by_byte(case):
    for raw in stored(ENTRIES[case]["backlog"]) + view(case):
        entry = entry_of(raw)
        assert entry.to_bytes() == raw.data
        assert entry.metadata.SerializeToString() == entry.metadata_bytes
    for raw in stored(ENTRIES[case]["compacted"]):
        assert framed(unframed(raw.data)) == raw.data


@pytest.mark.parametrize("case", ENTRIES)
def test_a_compaction_leaves_what_pulsars_left(case):
    backlog = stored(ENTRIES[case]["backlog"])
    ours = [without_frame(RawEntry(*entry)) for entry in compact_entries(backlog)]
    if case == LOST:
        assert ours == backlog
    else:
        assert ours == view(case)


@pytest.mark.parametrize("case", ENTRIES)
def test_a_view_of_pulsar_and_what_came_after_it_compacts_to_the_same(case):
    backlog = stored(ENTRIES[case]["backlog"])
    for end in range(1, len(backlog)):
        earlier = compact_entries(backlog[:end])
        assert compact_entries([*earlier, *backlog[end:]]) == compact_entries(backlog)
    if case != LOST:
        assert compact_entries(view(case)) == compact_entries(backlog)


class Topic:
    """The topic of a recorded case, its entries rebuilt from what was sent."""

    def __init__(self, case: RecordedCase) -> None:
        self._case = case
        self.entries: list[RawEntry] = []
        self.retain_null_key = case.data["broker_config"].get("topicCompactionRetainNullKey") == "true"
        self.order = "event-time" if case.by_event_time else "publish"

    def play(self, steps: list[Mapping[str, Any]]) -> None:
        for step in steps:
            if step["do"] == "compact":
                options = {"retain_null_key": self.retain_null_key, "order": self.order}
                self.entries = [RawEntry(*entry) for entry in compact_entries(self.entries, **options)]
            else:
                self._send(step)

    def _send(self, step: Mapping[str, Any]) -> None:
        messages = [self._case.data["sent"][number] for number in step["messages"]]
        form = Form(codec=CODECS[step["compression"]], publish_time=messages[0]["publish_time"])
        keys = [{"key": b"k", "value": b"v"}] if step["encrypted"] else []
        if step["do"] == "batch":
            ledger, entry, _ = id_of(messages[0]["message_id"])
            self.entries.append(batch(ledger, entry, list(map(sent, messages)), form, encryption_keys=keys))
            return
        for message in messages:
            ledger, entry, _ = id_of(message["message_id"])
            self.entries.append(single(ledger, entry, sent(message), form, encryption_keys=keys))

    def ids(self) -> list[tuple[int, int, int]]:
        return [message for raw in self.entries for message in read(raw)]


def sent(message: Mapping[str, Any]) -> Sent:
    payload = message["payload_b64"]
    return Sent(message["key"], None if payload is None else b64decode(payload), message["event_time"])


def read(raw: RawEntry) -> Iterable[tuple[int, int, int]]:
    """The ids of the messages that a reader of compacted data sees."""
    entry = entry_of(without_frame(raw))
    if entry.is_batch and not can_be_opened(entry):
        yield from ((raw.ledger, raw.entry, index) for index in range(entry.metadata.num_messages_in_batch))
    elif entry.is_batch:
        messages = messages_of_batch(entry)
        yield from ((raw.ledger, raw.entry, m.batch_index) for m in messages if not m.metadata.compacted_out)
    else:
        yield raw.ledger, raw.entry, -1


@pytest.mark.parametrize("case", RECORDED)
def test_a_reader_of_compacted_data_sees_what_pulsar_showed_it(case):
    recorded = RECORDED[case]
    topic, done = Topic(recorded), 0
    for steps, seen in recorded.checkpoints():
        topic.play(recorded.data["steps"][done:steps])
        done = steps
        expected = [id_of(message["message_id"]) for message in seen["compacted_read"]]
        lost = [(102, 0, 0), (102, 0, 1)] if case == LOST else []
        assert topic.ids() == lost + expected
        last = id_of(seen["last_message_id"]["compacted"])
        assert last == (last_id(topic.entries[-1]) if topic.entries else (-1, -1, -1))


def last_id(raw: RawEntry) -> tuple[int, int, int]:
    return raw.ledger, raw.entry, last_batch_index(entry_of(without_frame(raw)))


def test_values_and_keys_of_recorded_entries_are_those_that_were_sent():
    by_id = {id_of(m["message_id"]): m for case in ENTRIES for m in RECORDED[case].data["sent"]}
    seen = 0
    for raw in (raw for case in ENTRIES for raw in stored(ENTRIES[case]["backlog"])):
        entry = entry_of(raw)
        if not can_be_opened(entry):
            continue
        if entry.is_batch:
            messages = [(m.batch_index, key_of(m.metadata), m.payload) for m in messages_of_batch(entry)]
        else:
            messages = [(-1, key_of(entry.metadata), value_of(entry))]
        for index, key, value in messages:
            there = by_id.get((raw.ledger, raw.entry, index))
            if there is None:
                continue
            assert key == (None if there["key"] is None else there["key"].encode())
            assert value == b64decode(there["payload_b64"] or "")
            seen += 1
    assert seen > 10
