"""Whether a commit whose answer was lost is part of the newest version (C6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.topic.edit import TopicEdit
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


def test_a_partition_that_the_commit_adds_was_not_there_before() -> None:
    added = LogState(1, log_end_offset=3, epoch=2, run_ids=("mine",))
    edit = replace(EDIT, logs={1: added})
    assert landed(BASE, edit) is Landing.NOT_LANDED
    assert landed(replace(BASE, logs=(OLD, added)), edit) is Landing.LANDED
    theirs = replace(added, run_ids=("of another commit that adds it",))
    assert landed(replace(BASE, logs=(OLD, theirs)), edit) is Landing.NOT_LANDED
