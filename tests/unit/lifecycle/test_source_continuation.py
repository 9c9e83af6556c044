"""Where the copy of a Kafka log goes on."""

from __future__ import annotations

import pytest

from lithify.lifecycle.source_continuation import GoesOn, Lost, WentBack, continuation, continuations
from lithify.model.source import SourceLog
from support.builders import a_log
from support.topics.memory_topic import MemoryTopic


@pytest.mark.parametrize(
    ("log_end", "start", "end", "found"),
    [
        (None, 0, 0, GoesOn(0)),
        (None, 40, 90, GoesOn(40)),
        (50, 0, 90, GoesOn(50)),
        (50, 50, 90, GoesOn(50)),
        (50, 50, 50, GoesOn(50)),
        (50, 51, 90, Lost(50, 51)),
        (50, 0, 49, WentBack(50, 49)),
        (50, 0, 0, WentBack(50, 0)),
    ],
)
def test_the_offsets_decide(log_end, start, end, found):
    assert continuation(log_end, SourceLog(0, start, end)) == found


def test_a_log_that_was_never_filled_has_lost_nothing():
    topic = MemoryTopic(partitions=2)
    topic.append(a_log("a=1 b=1").records)
    source = {p: SourceLog(p, 1, 9) for p in range(3)}
    assert continuations(topic.state, source) == {0: GoesOn(2), 1: GoesOn(1), 2: GoesOn(1)}
    assert continuations(None, source) == dict.fromkeys(range(3), GoesOn(1))
