"""`SqlAppendNotes` does what the same in memory does, which is the specification (C75)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from leases.conftest import SHARED
from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes, open_append_notes
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import TopicName
from lithify.model.topic.append_note import AppendNote, AppendRun, Placed
from support.topics.memory_notes import MemoryNotes

HOUR_MS = 3_600_000
TOPICS = (TopicName("default", "orders"), TopicName("eu", "orders"))
KEYS = ("a", "b", "c")


def opened(url: str, scope: str = "one") -> SqlAppendNotes:
    return open_append_notes(url, None, WarehouseScope(scope, scope, scope))


def drawn_note(drawn: random.Random, now_ms: int, key: str | None = None) -> AppendNote:
    run, after = (f"r{drawn.randrange(4)}" for _ in range(2))
    places = tuple(Placed(p, drawn.randrange(9), 1) for p in range(drawn.randrange(3)))
    begun_ms = now_ms - round(drawn.choice((0, 20, 22.5, 23, 23.5, 24.5, 40)) * HOUR_MS)
    return AppendNote(key or drawn.choice(KEYS), "digest", "c0", run, after, places, begun_ms)


@pytest.mark.parametrize("url", SHARED, indirect=True)
@pytest.mark.parametrize("seed", range(4))
def test_random_calls_come_to_the_same(url: str, seed: int) -> None:
    drawn = random.Random(seed)
    textbook, other = MemoryNotes(), MemoryNotes()
    pairs = [(textbook, opened(url)), (textbook, opened(url)), (other, opened(url, "two"))]
    now_ms = 100 * HOUR_MS
    for _ in range(60):
        memory, stored = drawn.choice(pairs)
        topic = drawn.choice(TOPICS)
        there = memory.find(topic, KEYS)
        assert stored.find(topic, KEYS) == there
        run = AppendRun(f"r{drawn.randrange(4)}", drawn.randrange(9))
        match drawn.randrange(8):
            case 0 | 1 | 2 | 3:
                notes = [drawn_note(drawn, now_ms, key) for key in drawn.sample(KEYS, drawn.randrange(1, 4))]
                known = {key: note for key, note in there.items() if drawn.random() < 0.7}
                seen = {n.key: known.get(n.key, drawn_note(drawn, 0, n.key)) for n in notes if drawn.random() < 0.6}
                assert stored.note(topic, notes, seen, run) == memory.note(topic, notes, seen, run)
            case 4:
                stored.landed(topic, run)
                memory.landed(topic, run)
            case 5:
                now_ms += drawn.randrange(2) * 20 * HOUR_MS
                before_ms = now_ms - drawn.choice((24, 26)) * HOUR_MS
                stored.forget_before(before_ms)
                memory.forget_before(before_ms)
            case 6:
                for of, note in memory.forgotten(10):
                    assert (of, note) in stored.forgotten(10)
                    if drawn.random() < 0.2:  # another process was faster
                        stored.landed(of, AppendRun(note.run, 7))
                        memory.landed(of, AppendRun(note.run, 7))
                    given = replace(note, after="r9") if drawn.random() < 0.2 else note
                    stored.remove(of, given)
                    memory.remove(of, given)
                assert sorted(map(str, stored.forgotten(10))) == sorted(map(str, memory.forgotten(10)))
            case 7:
                assert stored.remove_landed(10) == memory.remove_landed(10)
    for memory, stored in pairs:
        assert all(stored.find(topic, KEYS) == memory.find(topic, KEYS) for topic in TOPICS)


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_requests_are_forgotten_up_to_a_time_that_never_goes_back(url: str) -> None:
    """By an hour, clocks may differ: notes remain so long after no new ones are taken."""
    now_ms, stored, topic = 100 * HOUR_MS, opened(url), TOPICS[0]

    def note(begun_ms: int) -> bool:
        made = AppendNote(str(begun_ms), "digest", "c0", "r1", "r0", (), begun_ms)
        return made.key in stored.note(topic, [made], {}, AppendRun("r0", 1))

    assert note(now_ms - 1) and note(now_ms)
    stored.landed(topic, AppendRun("r1", 2))
    stored.forget_before(now_ms)
    stored.forget_before(now_ms - 2 * HOUR_MS)
    assert not note(now_ms + HOUR_MS - 1)
    assert note(now_ms + HOUR_MS)
    assert stored.remove_landed(10) == 1
    assert list(stored.find(topic, [str(now_ms - 1), str(now_ms)])) == [str(now_ms)]
