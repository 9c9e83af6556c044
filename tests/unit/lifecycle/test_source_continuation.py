"""Where the copy of a Kafka log goes on."""

from __future__ import annotations

import pytest

from lithify.lifecycle.copies.continuation import (
    CopyContinues,
    NeverCopied,
    SourceWentBack,
    copy_continuation,
    copy_continuations,
)
from lithify.model.source import SourceLog
from support.builders import a_log
from support.topics.memory_topic import MemoryTopic


@pytest.mark.parametrize(
    ("log_end", "start", "end", "found"),
    [
        (None, 0, 0, CopyContinues(0)),
        (None, 40, 90, CopyContinues(40)),
        (50, 0, 90, CopyContinues(50)),
        (50, 50, 90, CopyContinues(50)),
        (50, 50, 50, CopyContinues(50)),
        (50, 51, 90, NeverCopied(50, 51)),
        (50, 0, 49, SourceWentBack(50, 49)),
        (50, 0, 0, SourceWentBack(50, 0)),
    ],
)
def test_the_offsets_decide(log_end, start, end, found):
    assert copy_continuation(log_end, SourceLog(0, start, end)) == found


def test_a_log_that_was_never_filled_has_lost_nothing():
    topic = MemoryTopic(partitions=2)
    topic.append(a_log("a=1 b=1").records)
    source = {p: SourceLog(p, 1, 9) for p in range(3)}
    assert copy_continuations(topic.state, source) == {0: CopyContinues(2), 1: CopyContinues(1), 2: CopyContinues(1)}
    assert copy_continuations(None, source) == dict.fromkeys(range(3), CopyContinues(1))
