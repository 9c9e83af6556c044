"""A topic of a Pulsar 4.0.1 broker and what its compactor left, twice: it knows no field 31 (PIP-429).

`broker_4_0.json` has, after each compaction, the topic's entries and those that a compacted reader got, as the broker
sent them, and the last ids that it told. Pulsar's client for Python wrote the topic, in all codecs.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lithify.pulsar import compact_entries
from lithify.pulsar.columns import messages_of
from lithify.pulsar.format.batch import last_batch_index, messages_of_batch, value_of
from lithify.pulsar.format.entry import Entry, RawEntry, entry_of
from lithify.pulsar.format.framing import unframed

ROUNDS = json.loads(Path(__file__).with_name("broker_4_0.json").read_text())["rounds"]


def stored(entries: Sequence[Mapping[str, Any]]) -> list[RawEntry]:
    return [RawEntry(entry["ledger"], entry["entry"], b64decode(entry["data_b64"])) for entry in entries]


VIEWS = [stored(one["view"]) for one in ROUNDS]
BACKLOGS = [stored(one["backlog"]) for one in ROUNDS]


def content(raw: RawEntry) -> tuple[object, ...]:
    """All of an entry but field 31; two libraries need not compress to the same bytes."""
    entry = entry_of(raw)
    metadata = entry.metadata
    metadata.ClearField("compacted_batch_indexes")
    return raw[:2], metadata.SerializeToString(), value_of(entry)


def test_the_broker_that_was_recorded_writes_no_field_31() -> None:
    batches = [entry_of(raw) for view in VIEWS for raw in view if entry_of(raw).is_batch]
    assert len(batches) > 3
    assert not any(entry.metadata.compacted_batch_indexes for entry in batches)
    assert any(message.metadata.compacted_out for entry in batches for message in messages_of_batch(entry))


@pytest.mark.parametrize("number", range(len(ROUNDS)))
def test_a_round_leaves_what_its_compactor_left(number: int) -> None:
    """C54: of the topic, of the earlier view and what came after it, and of the view alone."""
    backlog, view = BACKLOGS[number], VIEWS[number]
    earlier = VIEWS[number - 1] if number else []
    new = [raw for raw in backlog if not number or raw[:2] > BACKLOGS[number - 1][-1][:2]]
    for given in (backlog, [*earlier, *new], view):
        made = [unframed(data) for *_, data in compact_entries(given)]
        assert [*map(content, made)] == [*map(content, view)]


def test_its_entries_are_read_as_columns() -> None:
    """Placeholders without field 31 are no messages."""
    for view in VIEWS:
        (messages,) = messages_of(view)
        left = [row for row, out in enumerate(messages.compacted_out.tolist()) if not out]
        assert len(left) == sum(map(len, map(alive, map(entry_of, view))))


def alive(entry: Entry) -> list[object]:
    if not entry.is_batch:
        return [entry]
    return [message for message in messages_of_batch(entry) if not message.metadata.compacted_out]


@pytest.mark.parametrize("number", range(len(ROUNDS)))
@pytest.mark.parametrize("what", ["plain", "compacted"])
def test_last_ids_are_those_that_it_told(number: int, what: str) -> None:
    """C54: the last entry may be above the view's."""
    told = tuple(ROUNDS[number]["last"][what])
    last = (BACKLOGS[number] if what == "plain" else VIEWS[number])[-1]
    assert (*last[:2], last_batch_index(entry_of(last))) == told
