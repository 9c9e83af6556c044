"""Which entries and messages stay, rule by rule: Pulsar's rules, and those that keep what cannot be seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lithify.errors import InvalidInputError, InvalidSettingError
from lithify.pulsar import compact_entries
from lithify.pulsar.format.batch import messages_of_batch
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import unframed
from lithify.pulsar.format.kinds import Kind, kind_of
from support.pulsar.entries import Sent, batch, single
from support.pulsar.generated import ENCRYPTED


def sent(text: str) -> Sent:
    """`k=v@5`: a key, a value and an event time; `k=` deletes, `=v` has no key, `''=v` the empty one."""
    pair, _, event_time = text.partition("@")
    key, _, value = pair.partition("=")
    return Sent({"": None, "''": ""}.get(key, key), value.encode(), int(event_time or 0))


def topic(text: str) -> list[RawEntry]:
    """Entries 0, 1, ... of ledger 1.

    `k=1` one message, `[k=1 k=2]` a batch, `?[...]` an encrypted one, `!k=1` a marker of a broker, and
    `u0/2:k=1` chunk 0 of the two of message u.
    """
    entries: list[RawEntry] = []
    for word in text.replace("[", "[ ").split(";"):
        entries.append(_entry(len(entries), word.strip()))
    return entries


def _entry(number: int, word: str) -> RawEntry:
    if word.endswith("]"):
        sealed, _, inner = word[:-1].partition("[")
        return batch(1, number, [sent(each) for each in inner.split()], **ENCRYPTED if sealed else {})
    if word.startswith("!"):
        return single(1, number, sent(word[1:]), marker_type=1)
    chunk, colon, rest = word.rpartition(":")
    if not colon:
        return single(1, number, sent(word))
    which, _, total = chunk.partition("/")
    fields = {"uuid": which[:1].encode(), "chunk_id": int(which[1:]), "num_chunks_from_msg": int(total)}
    return single(1, number, sent(rest), **fields)


def kept(entries: Sequence[tuple[int, int, bytes]]) -> str:
    """`0 2.1 3`: entries 0 and 3, of the batch that is entry 2 message 1."""
    ids = []
    for raw in (unframed(data) for _, _, data in entries):
        entry = entry_of(raw)
        if kind_of(entry) is Kind.BATCH:
            alive = (m.batch_index for m in messages_of_batch(entry) if not m.metadata.compacted_out)
            ids += [f"{raw.entry}.{index}" for index in alive]
        else:
            ids.append(str(raw.entry))
    return " ".join(ids)


PUBLISH = [
    ("k=1; k=2; j=1", "1 2"),
    ("[k=1 k=2 j=1]; k=3", "0.2 1"),
    ("k=1; k=; j=1", "2"),
    ("k=1; [j=1 k=]", "1.0"),
    ("k=1; k=; k=2", "2"),
    ("k=1@9; k=2@1", "1"),
    ("=1; [=2 k=1]; =", "1.1"),
    ("''=1; ''=2", "1"),
    ("k=1; !k=2; !k=", "0"),
]


@pytest.mark.parametrize(("text", "stays"), PUBLISH)
def test_in_publishing_order_the_last_message_of_a_key_stays(text, stays):
    assert kept(compact_entries(topic(text))) == stays


EVENT_TIME = [
    ("k=1@5; k=2@3", "0"),
    ("k=1@5; k=2@7", "1"),
    ("k=1@5; k=2@5", "1"),
    ("k=1@5; [k=2@5]", "0"),
    ("k=1@5; [k=2@6]", "1.0"),
    ("k=1; k=2", "1"),
    ("k=1@5; k=@4", "0"),
    ("k=1@5; k=@5", ""),
    ("k=1@5; [k=@5]", "0"),
    ("k=1@5; k=@6; k=2@1", "2"),
]


@pytest.mark.parametrize(("text", "stays"), EVENT_TIME)
def test_by_event_time_the_newest_stays_with_pulsars_rules_for_ties(text, stays):
    assert kept(compact_entries(topic(text), order="event-time")) == stays


SEALED = [
    ("publish", "k=1; ?[k=2 j=1]; k=3", "1 2"),  # kept for the sake of j
    ("publish", "k=1; ?[j=1 i=1]; j=", "0 1 2"),  # a deletion after it also deletes what it hides
    ("publish", "k=; ?[j=1 i=1]", "1"),  # before it there is nothing hidden to delete
    ("publish", "k=1; ?[k=2]", "1"),  # of one message, its key shows
    ("publish", "?[k=1]; k=2", "1"),
    ("publish", "?[k=1]; k=", ""),
    ("publish", "?[=1]", "0"),  # of one message that shows no key
    ("event-time", "k=1@5; ?[k=2@9]; k=3@5", "1 2"),  # its event time does not show
    ("event-time", "k=1@5; ?[k=@9 j=1]; k=2@1", "0 1 2"),  # it may have deleted what k=2 would lose against
    ("event-time", "k=1@5; ?[k=@9 j=1]; k=2@1; k=3@3", "0 1 3"),
    ("event-time", "k=1@5; ?[j=1 i=1]; k=2@7; k=@6", "1 2"),
    ("event-time", "?[j=1 i=1]; k=1@5; k=@6; k=2@1", "0 2 3"),
]


@pytest.mark.parametrize(("order", "text", "stays"), SEALED)
def test_a_sealed_batch_loses_nothing_that_it_hides_and_nothing_deleted_comes_back(order, text, stays):
    assert kept(compact_entries(topic(text), order=order)) == stays


CHUNKED = [
    ("u0/2:k=a; u1/2:k=b", "0 1"),
    ("k=1; u0/2:k=a; u1/2:k=b", "1 2"),
    ("u0/2:k=a; k=1; u1/2:k=b", "0 2"),  # it counts where it is complete
    ("u0/2:k=a; u1/2:k=b; k=1", "2"),
    ("u0/2:k=a; u1/2:k=b; k=", ""),
    ("k=1; u0/2:k=a; j=1", "0 1 2"),  # the rest of it may come later
    ("u0/2:k=a; w0/2:k=c; u1/2:k=b; w1/2:k=d", "1 3"),
    ("u0/2:k=a; u1/2:k=b; k=1; u1/2:k=b", "2"),  # a chunk that was sent again is not the message again
    ("u0/3:k=a; u1/3:k=b; u1/3:k=b; u2/3:k=c", "0 1 3"),
    ("u0/2:k=a; u1/2:k=b; k=1; u0/2:k=c; u1/2:k=d", "3 4"),  # but all of them are, or another with the same id
    ("u0/2:k=a; u0/2:k=a; u1/2:k=b", "1 2"),  # sent again from the start
    ("k=1; u1/2:k=b", "0"),  # without its beginning no reader gets it
    ("k=1; u0/3:k=a; u2/3:k=c", "0"),
    ("u0/3:k=a; u2/3:k=c; u1/3:k=b; u2/3:k=c; k=1", "4"),
    ("u0/2:k=a; u0/2:j=a; u1/2:j=b", "0 1 2"),
]


@pytest.mark.parametrize(("text", "stays"), CHUNKED)
def test_the_chunks_of_a_message_stay_or_go_together(text, stays):
    assert kept(compact_entries(topic(text))) == stays


def test_messages_without_a_key_stay_if_the_broker_retains_them():
    assert kept(compact_entries(topic("=1; [=2 k=1]; =; u0/2:=a; u1/2:=b"), retain_null_key=True)) == "0 1.0 1.1 2 3 4"


def test_an_entry_that_comes_twice_is_refused():
    with pytest.raises(InvalidInputError, match="entry 1:0 is given twice"):
        compact_entries([*topic("k=1"), *topic("k=1")])


def test_an_unknown_order_is_refused():
    with pytest.raises(InvalidSettingError, match="use publish or event-time"):
        compact_entries([], order="size")
