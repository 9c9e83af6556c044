"""Entries that their producers wrote damaged: kept whole and named where that is asked for, else an error (C74)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lithify.errors import DamagedError
from lithify.model.message import DAMAGED_NAMED_AT_MOST, MessageId
from lithify.ports.pulsar.views import EntryRange
from lithify.pulsar.columns import Damage, Kind, messages_of
from lithify.pulsar.format.batch import messages_of_batch
from lithify.pulsar.format.codecs import KNOWN, NONE, ZSTD
from lithify.pulsar.format.entry import BATCH_LIMIT, RawEntry, entry_of, joined
from lithify.pulsar.format.framing import unframed
from lithify.pulsar.lake.records import records_of
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.reports.pulsar.damaged import kept_whole
from support.pulsar.entries import Form, Sent, batch, single
from support.pulsar.generated import ENCRYPTED
from support.pulsar.pure_rounds import shuffled_round
from support.pulsar.topics import StoredTopic

SENT = [Sent("a", b"1"), Sent("b", b"2"), Sent("c", b"3")]
LIES = {
    **{f"{count} messages": {"num_messages_in_batch": count} for count in (-1, 0, 1, 2, 4, BATCH_LIMIT + 1, 2**31 - 1)},
    "kept indexes in disorder": {"compacted_batch_indexes": [2, 1]},
    "kept indexes beyond the batch": {"compacted_batch_indexes": [0, 9], "num_messages_in_batch": 5},
    "another codec": {"compression": ZSTD},
    "metadata that is cut off": {},
    "metadata without a producer": {},
}
BEFORE, AFTER = single(5, 0, Sent("a", b"0")), single(5, 2, Sent("b", b""))


def a_liar(case: str) -> RawEntry:
    liar = batch(5, 1, SENT, **LIES[case])
    if not case.startswith("metadata"):
        return liar
    entry = entry_of(liar)
    cut = entry.metadata_bytes[:-1] if case.endswith("cut off") else entry.metadata_bytes[3:]
    return liar._replace(data=joined(None, cut, entry.payload))


@pytest.mark.parametrize("case", LIES)
def test_a_liar_is_one_row_of_which_nothing_shows(case):
    entries = [BEFORE, a_liar(case), AFTER]
    with pytest.raises(DamagedError, match="entry 5:1 of the topic is damaged"):
        list(messages_of(entries))
    damage = Damage()
    (messages,) = messages_of(entries, damage)
    assert messages.kind.tolist() == [Kind.PLAIN, Kind.SEALED_BATCH, Kind.PLAIN]
    assert messages.key.to_pylist() == [b"a", None, b"b"]
    assert messages.batch_index.tolist() == [-1] * 3
    assert (damage.count, damage.named) == (1, ["5:1"])


@pytest.mark.parametrize("case", LIES)
def test_a_liar_is_copied_whole(case):
    """C53: as an encrypted batch, whose content any consumer may decode."""
    liar, damage = a_liar(case), Damage()
    (messages,) = messages_of([BEFORE, liar, AFTER], damage)
    table = records_of(messages, 0, None, damage)
    entry = entry_of(liar, any_metadata=True)
    assert table.column("passed_through").to_pylist() == [False, True, False]
    assert table.column("value").to_pylist() == [b"0", entry.payload, b""]
    assert table.column("metadata")[1].as_py() == entry.metadata_bytes


@pytest.mark.parametrize("case", LIES)
@pytest.mark.parametrize("order", ["publish", "event-time"])
def test_a_view_has_a_liar_byte_by_byte_and_the_deletes_behind_it(tmp_path, case, order):
    """C54, C74: with what it would have for an encrypted batch in its place."""
    rules = RoundRules(order=order, skip_damaged=True)
    liar = a_liar(case)

    def view(entry: RawEntry) -> list[RawEntry]:
        entries = [BEFORE, entry, AFTER, single(5, 3, Sent("a", b"9"))]
        whole = EntryRange(None, MessageId(5, 3), 1)
        return [unframed(data) for data in shuffled_round(StoredTopic.of(tmp_path, entries), [whole], rules)]

    sealed = batch(5, 1, SENT, **ENCRYPTED)
    assert [liar if raw == sealed else raw for raw in view(sealed)] == view(liar)
    assert view(liar)[:2] == [liar, AFTER]


@pytest.mark.parametrize("codec", sorted(KNOWN - {NONE}))
def test_a_message_whose_payload_is_none_is_copied_as_it_is_with_its_key(codec):
    broken = single(5, 1, Sent("b", b"2" * 50), compression=codec, uncompressed_size=50)
    (messages,) = messages_of([BEFORE, broken, AFTER])
    with pytest.raises(DamagedError, match="entry 5:1"):
        records_of(messages, 0)
    damage = Damage()
    table = records_of(messages, 0, None, damage)
    assert table.column("key").to_pylist() == [b"a", b"b", b"b"]
    assert table.column("value").to_pylist() == [b"0", b"2" * 50, b""]
    assert damage.named == ["5:1"]


def test_what_was_damaged_since_is_an_error_nevertheless():
    """A bookie may have it as it was."""
    good = batch(5, 1, SENT, Form(ZSTD))
    for at in (3, len(good.data) // 2, len(good.data) - 1):
        changed = good._replace(data=good.data[:at] + bytes([good.data[at] ^ 1]) + good.data[at + 1 :])
        with pytest.raises(DamagedError, match="entry 5:1"):
            list(messages_of([changed], Damage()))


def test_only_the_first_are_named_and_the_others_counted():
    liars = [a_liar("4 messages")._replace(entry=entry) for entry in range(3 * DAMAGED_NAMED_AT_MOST)]
    damage = Damage()
    tables = [records_of(messages, 0, None, damage) for messages in messages_of(liars, damage)]
    assert pa.concat_tables(tables).num_rows == damage.count == len(liars)
    assert damage.named == [f"5:{entry}" for entry in range(DAMAGED_NAMED_AT_MOST)]
    assert kept_whole("t", damage.count, damage.named).endswith("5:8, 5:9 and 290 more")
    assert kept_whole("t", 1, ["5:1"]) == "t: 1 damaged entry was kept whole: 5:1"


def test_a_batch_that_is_right_is_no_liar():
    damage = Damage()
    entries = [batch(4, codec, SENT, Form(codec)) for codec in sorted(KNOWN)]
    (messages,) = messages_of([*entries, a_liar("4 messages")], damage)
    assert len(messages) == 3 * len(entries) + 1
    assert all(len(messages_of_batch(entry_of(raw))) == 3 for raw in entries)
