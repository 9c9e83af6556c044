"""Where the copy of a Kafka log goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.lifecycle.copies.continuation import (
    CopyContinues,
    NeverCopied,
    SourceWasCut,
    SourceWentBack,
    copy_continuation,
    copy_continuations,
    epochs_to_ask,
    with_cuts,
)
from lithify.model.source import EpochAt, SourceLog
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


@pytest.mark.parametrize(
    ("stored", "there", "asked"),
    [
        (3, 5, {0: EpochAt(2, 3)}),
        (3, 1, {0: EpochAt(2, 3)}),  # another log under the same name
        (3, 3, {}),  # no log loses records within an epoch
        (None, 5, {}),  # copied by an earlier Lithify
        (3, None, {}),  # a broker that counts none
    ],
)
def test_a_source_with_another_leader_epoch_is_asked_whether_it_was_cut(stored, there, asked):
    """C72"""
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1").records)
    state = replace(topic.state, logs=(replace(topic.state.log(0), source_epoch=stored),))
    assert epochs_to_ask(state, {0: SourceLog(0, 0, 9, there), 1: SourceLog(1, 0, 9, 4)}) == asked


def test_only_a_copy_that_could_go_on_is_one_of_a_source_that_was_cut():
    found = {0: CopyContinues(5), 1: SourceWentBack(5, 4), 2: CopyContinues(5)}
    cut = {0: SourceWasCut(5, 3), 1: SourceWasCut(5, 3)}
    assert with_cuts(found, cut) == {0: SourceWasCut(5, 3), 1: SourceWentBack(5, 4), 2: CopyContinues(5)}
