"""Whether a commit whose answer was lost is part of the newest version (C6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.segment import Mask
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.landing import Landing, landing
from support.builders import a_segment, a_topic

OLD = LogState(0, run_ids=("earlier",))
BASE = a_topic(OLD)
EDIT = TopicEdit("mine", 5, {0: replace(OLD, log_end_offset=3)}, add=(a_segment("s"),))


def landed(newest: TopicState, edit: TopicEdit = EDIT) -> Landing:
    return landing(edit, BASE, newest, lambda _partitions: ())


@pytest.mark.parametrize(
    ("runs", "expected"), [(("earlier", "mine"), Landing.LANDED), (("earlier",), Landing.NOT_LANDED)]
)
def test_the_runs_of_a_log_say_it(runs: tuple[str, ...], expected: Landing) -> None:
    newest = replace(BASE, logs=(replace(OLD, run_ids=runs),))
    assert landed(newest) is expected
    assert landed(replace(newest, identity="recreated")) is Landing.UNKNOWN


def test_a_new_mask_tells_it_and_not_the_file_that_was_there() -> None:
    whole = a_segment("s")
    edit = replace(EDIT, add=(replace(whole, mask=Mask("mask", 100, 1)),), remove=(whole,), verb=Verb.COMPACT)
    newest = replace(BASE, logs=(replace(OLD, run_ids=("others",)),))
    for there, expected in ((edit.add, Landing.LANDED), (edit.remove, Landing.NOT_LANDED)):
        assert landing(edit, BASE, newest, lambda _, there=there: there) is expected  # type: ignore[misc]


def test_a_partition_that_the_commit_adds_was_not_there_before() -> None:
    added = LogState(1, log_end_offset=3, epoch=2, run_ids=("mine",))
    edit = replace(EDIT, logs={1: added})
    assert landed(BASE, edit) is Landing.NOT_LANDED
    assert landed(replace(BASE, logs=(OLD, added)), edit) is Landing.LANDED
    theirs = replace(added, run_ids=("of another commit that adds it",))
    assert landed(replace(BASE, logs=(OLD, theirs)), edit) is Landing.NOT_LANDED
