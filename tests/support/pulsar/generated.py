"""Hypothesis strategies for the entries of a topic: few keys, so that messages meet, and every odd kind of entry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from hypothesis import strategies as st

from lithify.pulsar.format.batch import messages_of_batch, with_payload, without_messages
from lithify.pulsar.format.codecs import KNOWN, NONE, compressed
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import framed
from support.pulsar.entries import Form, Sent, batch, single, stored_in_batch

KEYS = ("a", "b", "c", "aa", "", None)
LIKE_A_MESSAGE = stored_in_batch(Sent("a", b"1"))
VALUES = st.sampled_from([None, b"", b"", b"1", b"22", b"\x00" * 300, LIKE_A_MESSAGE, b"\x00\x00\x00\x05" * 20])
"""Empty ones delete; some look like messages of a batch themselves."""
PROPERTIES = st.sampled_from([{}, {}, {"p": "1"}, {"": ""}, {"p": "1", "q": "x" * 200}])
EVENT_TIMES = st.sampled_from([0, 0, 1, 2, 3, 1_795_246_688_821])


def messages(keys: Sequence[str | None]) -> st.SearchStrategy[Sent]:
    """A message with one of these keys."""
    return st.builds(
        Sent,
        st.sampled_from(keys),
        VALUES,
        EVENT_TIMES,
        st.sampled_from([0, 1, 300, 2**40, 2**63]),
        PROPERTIES,
        st.booleans(),
        st.sampled_from([None, None, b"o"]),
    )


FORMS = st.builds(
    Form,
    st.sampled_from(sorted(KNOWN)),
    st.sampled_from([0, 1, 1_795_246_688_821]),
    st.sampled_from(["p", "q"]),
    st.sampled_from([True, True, False]),
    st.sampled_from([None, 7]),
    st.booleans(),
)
ENCRYPTED = {"encryption_keys": [{"key": b"k", "value": b"v"}]}
KINDS = ("single", "batch", "batch", "batch", "compacted", "retained", "sealed", "sealed batch", "chunk", "marker")


@st.composite
def topics(draw: st.DrawFn, kinds: Sequence[str] = KINDS, keys: Sequence[str | None] = KEYS) -> list[RawEntry]:
    """The entries of a partition in order, some of them framed or compacted before."""
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=8))
    steps = draw(st.lists(st.sampled_from([1, 1, 3]), min_size=len(chosen), max_size=len(chosen)))
    entries = []
    for kind, place in zip(chosen, accumulate(steps), strict=True):
        raw = _entry(draw, kind, keys, RawEntry(place // 4, place, b""))
        framing = draw(st.sampled_from([False, False, True]))
        entries.append(raw._replace(data=framed(raw)) if framing else raw)
    return entries


def _entry(draw: st.DrawFn, kind: str, keys: Sequence[str | None], place: RawEntry) -> RawEntry:
    """An entry of that kind, with the id of `place`."""
    message = messages(keys)
    form, sent, (ledger, entry, _) = draw(FORMS), draw(message), place
    match kind:
        case "single":
            return single(ledger, entry, sent, form)
        case "sealed":
            return single(ledger, entry, sent, form, **draw(st.sampled_from([ENCRYPTED, {"compression": 9}])))
        case "marker":
            return single(ledger, entry, sent, form, marker_type=draw(st.integers(0, 30)))
        case "chunk":
            chunk = {"uuid": draw(st.sampled_from([b"u", b"w"])), "chunk_id": draw(st.sampled_from([0, 0, 1, 1, 2]))}
            key = draw(st.sampled_from([keys[0], keys[0], keys[-1]]))
            return single(ledger, entry, Sent(key, b"part"), form, num_chunks_from_msg=draw(st.integers(2, 3)), **chunk)
    many = draw(st.lists(message, min_size=1, max_size=6))
    if kind == "sealed batch":
        return batch(ledger, entry, many, form, **draw(st.sampled_from([ENCRYPTED, {"compression": 9}])))
    raw = batch(ledger, entry, many, form)
    if kind == "batch":
        return raw
    alive = draw(st.integers(0, len(many) - 1))
    dead = draw(st.sets(st.integers(0, len(many) - 1))) - {alive}
    kept = without_messages(entry_of(raw), dead)
    assert kept is not None
    raw = raw._replace(data=kept)
    return raw if kind == "compacted" else retained_only(raw)


def retained_only(raw: RawEntry) -> RawEntry:
    """A compacted batch in the other layout: its payload has the messages only that were kept."""
    entry = entry_of(raw)
    kept = [message for message in messages_of_batch(entry) if not message.metadata.compacted_out]
    data = b"".join(message.stored for message in kept)
    payload = compressed(entry.metadata.compression or NONE, data)
    indexes = [message.batch_index for message in kept]
    return raw._replace(data=with_payload(entry, payload, len(data), indexes))
