"""What a publication takes for a later version, and what it does about the progress of another run (C49)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from lithify.errors import LogTruncatedError
from lithify.kafka.publisher.offset_map import OffsetMap
from lithify.kafka.publisher.publishing import _Run
from lithify.kafka.publisher.session import _checked
from lithify.kafka.publisher.transactions import Stored
from lithify.kafka.publisher.translated_groups import Groups
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.testing.fake_clock import FakeClock
from support.builders import a_topic
from support.topics.memory_topic import MemoryTopic


@dataclass
class Versions:
    """A topic that is at one version after the other."""

    left: list[TopicState]
    name: str = "orders"
    warehouse: Any = field(default_factory=lambda: SimpleNamespace(clock=FakeClock()))

    def state(self) -> TopicState:
        return self.left.pop(0)


def test_another_state_of_the_same_version_number_is_the_next_one() -> None:
    state = a_topic(LogState(0))
    restored = replace(state, logs=(state.log(0).with_run("other"),))
    cluster: Any = SimpleNamespace(stops=lambda: False)
    topic: Any = Versions([replace(state), replace(state), restored])
    wanted: Any = SimpleNamespace(to="t")
    run = _Run(topic, wanted, cluster, 1_000, lambda _records: None, lambda _note: None, Groups())
    assert run._next(state, lambda _records: None) == restored


def test_what_another_run_has_published_since_is_compared_with_a_later_version() -> None:
    topic = MemoryTopic()
    topic.append([Record(b"a", b"1")])
    loaded = topic.state
    topic.append([Record(b"a", b"2")])
    ahead = {0: Stored(Cursor.of(topic.state, topic.log(), 2), OffsetMap())}
    with pytest.raises(LogTruncatedError, match="an earlier state of the topic"):
        _checked(ahead, a_warehouse_at(loaded), loaded)
    found = _checked(ahead, topic.warehouse, loaded)[0].cursor
    assert (found, found.run) == (ahead[0].cursor, None)
    same = {0: Stored(Cursor.of(loaded, loaded.log(0), 1), OffsetMap())}
    assert _checked(same, a_warehouse_at(None), loaded)[0].cursor.run == loaded.log(0).run_ids[-1]


def a_warehouse_at(state: TopicState | None) -> Any:
    """A warehouse whose topic is at that version."""
    return SimpleNamespace(store=SimpleNamespace(load=lambda _name: state))
