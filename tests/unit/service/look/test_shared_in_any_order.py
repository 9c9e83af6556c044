"""Two watches that share what they read find what watches find that share nothing, in any order of events (C50).

a        a watch asks for the change tokens; what follows comes before it reads topics
A        it reads topics: as of these tokens, or of new ones
b, B     the other watch, which keeps topics
+        an append
r        the topic is deleted and recreated
z        the catalog is restored to the version before
>, <     the clock is set
"""

from __future__ import annotations

from itertools import product

import pytest

from lithify.model.record import Record
from lithify.service.look.assessed_topic import AssessedTopic, SharedTopics
from lithify.service.look.catalog_watch import CatalogWatch, Finding
from support.topics.memory_topic import ORDERS, MemoryTopic

EVENTS = "aAbB+rz><"
LENGTH = 3
BEFORE = "A+", "AB+", "aB+"
"""What has happened before, so that watches know something."""


class Tokens:
    """A store whose versions have tokens of their own, also those after a restoration, and can be read by them."""

    def __init__(self, real):
        self.real, self.states, self.asked = real, [], None

    def __getattr__(self, name):
        return getattr(self.real, name)

    def ask(self):
        state = self.real.load(ORDERS)
        if not any(state is known for known in self.states):
            self.states.append(state)
        token = next(n for n, known in enumerate(self.states) if known is state)
        return [(ORDERS, str(token))]

    def change_tokens(self):
        yield from self.asked or self.ask()

    def load_at(self, name, token):
        return self.states[int(token)]


class Assessing:
    """Its findings are all that was assessed. It keeps topics, as an overview does, or looks by the clock."""

    def __init__(self, *, keeps: bool):
        self.keeps = keeps

    def finding(self, topic: AssessedTopic, now_ms):
        value = topic.state, topic.assessments, topic.reads
        if self.keeps:
            return Finding(value, now_ms, topic=topic)
        due_ms = [one.verdict.due_at_ms for one in topic.assessments.values() if one.verdict.due_at_ms is not None]
        return Finding(value, min(due_ms, default=None))

    def failed(self, name, error, now_ms):
        raise AssertionError(error)


class World:
    """Each watch that shares has a twin that does not, and looks at the same moments."""

    def __init__(self):
        self.topic = MemoryTopic(now_ms=10**9, partitions=2, min_compaction_lag_ms=60_000)
        self.store, shared = Tokens(self.topic.store), SharedTopics()
        self.watches = {
            name: [CatalogWatch(self.store, Assessing(keeps=name == "b"), shared=among) for among in (shared, None)]
            for name in "ab"
        }
        self.asked = {}

    def does(self, event):
        match event:
            case "a" | "b":
                self.asked[event] = self.store.ask()
            case "A" | "B":
                self.looks(event.lower())
            case "+":
                self.store.ask()  # each version has a token, also if no watch has seen it
                self.topic.append([Record(b"k", b"v", self.topic.clock.now_ms())])
            case "r":
                self.topic.make_again()
            case "z":
                versions = self.topic.store._topics[ORDERS].versions
                del versions[max(1, len(versions) - 1) :]
            case ">" | "<":
                self.topic.clock.advance(7_200_000 if event == ">" else -7_200_000)

    def looks(self, name):
        self.store.asked = self.asked.pop(name, None)
        found = []
        for watch in self.watches[name]:
            watch.look(self.topic.clock.now_ms())
            found.append({topic: known.finding for topic, known in watch.known.items()})
        self.store.asked = None
        shared, alone = ({topic: (one.value, one.look_at_ms) for topic, one in each.items()} for each in found)
        assert shared == alone


@pytest.mark.parametrize("before", BEFORE)
def test_they_find_what_watches_find_that_share_nothing(before):
    for events in product(EVENTS, repeat=LENGTH):
        if not {"A", "B"} & {*events}:
            continue
        world = World()
        for event in (*before, *events, "A", "B"):
            try:
                world.does(event)
            except AssertionError as error:
                raise AssertionError("".join((*before, " ", *events))) from error
