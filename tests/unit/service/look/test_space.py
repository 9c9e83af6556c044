"""The space of a topic, from metadata alone (C6)."""

from __future__ import annotations

from collections import Counter

import pytest

from lithify.errors import DamagedError
from lithify.model.record import Record
from lithify.model.segment import sizes_of
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.look.space import space_of
from lithify.service.look.status import topic_infos
from support.topics.memory_topic import ORDERS, MemoryTopic

DAY_MS = 86_400_000


class CountingStore:
    """A store that counts its calls by name."""

    def __init__(self, store):
        self._store = store
        self.calls = Counter()

    def __getattr__(self, name):
        self.calls[name] += 1
        return getattr(self._store, name)


def size(segments):
    return sum(sizes_of(segments).values())


def written(topic, *keys):
    topic.append([Record(key.encode(), b"v" * 10, 0) for key in keys])


def test_in_place_it_opens_no_manifest_and_lists_no_folder():
    topic = MemoryTopic()
    written(topic, "a", "b")
    written(topic, "a")
    before = topic.segments()
    topic.compact()
    store = CountingStore(topic.store)
    space = space_of(store, topic.state)
    assert store.calls == Counter(versions=1)
    assert (space.live_bytes, space.view_bytes) == (size(topic.segments()), 0)
    assert (space.earlier_versions, space.earlier_versions_until_ms) == (1, topic.clock.now_ms() + DAY_MS)
    gone = tuple(s for s in before if s.path not in sizes_of(topic.segments()))
    assert space.earlier_versions_bytes == size(gone) > 0
    assert space.stored_bytes == size({*before, *topic.segments()})


def test_a_file_that_a_log_and_its_view_share_is_counted_once():
    topic = MemoryTopic(compaction_mode="side-by-side")
    written(topic, "a", "b")
    topic.compact()
    assert topic.segments() == topic.view()
    space = space_of(topic.store, topic.state)
    assert (space.live_bytes, space.view_bytes) == (space.stored_bytes, 0) == (size(topic.view()), 0)
    written(topic, "a")
    topic.compact()
    log, view = topic.segments(), topic.view()
    assert not sizes_of(log).keys() & sizes_of(view)
    space = space_of(topic.store, topic.state)
    assert (space.live_bytes, space.view_bytes) == (size(log), size(view))
    assert (space.stored_bytes, space.earlier_versions_bytes) == (size({*log, *view}), 0)


def test_a_view_that_cannot_be_read_is_an_error_and_no_number():
    """C48."""
    topic = MemoryTopic(compaction_mode="side-by-side")
    written(topic, "a", "b")
    topic.compact()

    class Damaged(CountingStore):
        def view(self, state):
            raise DamagedError("no such branch")

    with pytest.raises(DamagedError, match="no such branch"):
        space_of(Damaged(topic.store), topic.state)


def test_after_an_undo_the_files_of_the_round_are_those_of_earlier_versions():
    topic = MemoryTopic()
    written(topic, "a", "b")
    written(topic, "a")
    before = topic.segments()
    topic.compact()
    of_round = tuple(s for s in topic.segments() if s.path not in sizes_of(before))
    undo(topic.warehouse, ORDERS)
    space = space_of(topic.store, topic.state)
    assert (space.live_bytes, space.earlier_versions_bytes) == (size(before), size(of_round))


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_a_sweep_counts_what_the_metadata_tells_and_metadata_by_itself(mode):
    topic = MemoryTopic(compaction_mode=mode)
    for _ in range(3):
        written(topic, "a", "b")
        topic.compact()
        swept = sweep(topic.warehouse, ORDERS, delete=False)
        assert (swept.stored_bytes, swept.metadata_bytes) == (space_of(topic.store, topic.state).stored_bytes, 0)
    topic.clock.advance(DAY_MS)
    expire_versions(topic.warehouse, ORDERS)
    swept = sweep(topic.warehouse, ORDERS, delete=True)
    assert swept.stored_bytes == space_of(topic.store, topic.state).stored_bytes > 0


def test_without_earlier_versions_nothing_goes():
    topic = MemoryTopic()
    written(topic, "a")
    written(topic, "a")
    topic.compact()
    topic.clock.advance(DAY_MS)
    expire_versions(topic.warehouse, ORDERS)
    space = space_of(topic.store, topic.state)
    assert (space.earlier_versions, space.earlier_versions_bytes, space.earlier_versions_until_ms) == (0, 0, None)
    assert space.stored_bytes == space.live_bytes


def test_a_list_of_topics_reads_no_more_for_it():
    topic = MemoryTopic(compaction_mode="side-by-side")
    written(topic, "a")
    topic.compact()
    store = CountingStore(topic.store)
    object.__setattr__(topic.warehouse, "store", store)
    (info,) = topic_infos(topic.warehouse)
    assert info.space is None
    assert not store.calls.keys() & {"segments", "view", "versions", "stored_files"}
    assert (store.calls["load_at"], store.calls["load"], store.calls["topics"]) == (1, 0, 0)
