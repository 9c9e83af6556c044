"""How far groups have read the logs of a topic that names them, by their positions (C61, C62)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.cursor import UNTOLD, Cursor
from lithify.model.groups.positions import Position
from lithify.model.groups.reads import EVERYTHING, NO_READS, NONE_NAMED, GroupRead, reads_of
from lithify.model.names import LogId, TopicName
from lithify.model.topic.log import TRUNCATIONS_KEPT, LogState
from support.builders import a_topic, some_settings

LOG = LogState(0, log_end_offset=100, epoch=9, generation=2, truncated=(60, 40))
NAMED = some_settings(tombstone_hold_groups="g,h", backlog_trim_groups="h", compaction_mode="side-by-side")


def topic(log=LOG, settings=NAMED):
    return a_topic(log, settings=settings)


def at(offset, group="g", *, identity=None, generation=2, epoch=9, name=None):
    state = topic()
    log = LogId(state.name if name is None else name, 0)
    cursor = Cursor(identity or state.identity, generation, offset, epoch)
    return Position(group, log, cursor, compacted=True, committed_ms=5)


def read(*positions, log=LOG):
    return reads_of(topic(log), positions).of(0)


def test_the_slowest_group_counts():
    """C61, C62: and one without a position has read nothing."""
    found = read(at(50), at(30, "h"), at(1, "other"))
    assert (found.tombstones_below, found.backlog_below) == (30, 30)
    assert found.holding == (GroupRead("g", 50, 5, 9), GroupRead("h", 30, 5, 9))
    assert (read(at(50)).tombstones_below, read(at(50)).backlog_below) == (0, 0)
    assert read().holding == (GroupRead("g", 0), GroupRead("h", 0))


@pytest.mark.parametrize(
    ("position", "offset"),
    [
        (at(70), 70),
        (at(101), 100),
        (at(70, generation=1), 40),
        (at(70, generation=0), 40),
        (at(30, generation=0), 30),
        (at(70, generation=3), 0),
        (at(70, epoch=10), 0),
        (at(70, epoch=UNTOLD), 70),
        (at(70, identity="another"), 0),
        (at(70, name=TopicName("default", "another")), 0),
    ],
)
def test_what_a_position_shows_to_have_been_read(position, offset):
    """C61: nothing of a recreated topic or a state that was lost; of a truncated log what is left of it."""
    assert read(position).holding[0].offset == offset


def test_after_more_truncations_than_are_known_nothing_counts():
    """C61."""
    log = replace(LOG, generation=TRUNCATIONS_KEPT + 2, truncated=(90,) * TRUNCATIONS_KEPT)
    assert read(at(50, generation=1), log=log).holding[0].offset == 0
    assert read(at(50, generation=2), log=log).holding[0].offset == 50


def test_a_topic_that_names_no_group_is_held_by_none():
    """C61, C62: nothing of it waits, and nothing is trimmed."""
    found = reads_of(topic(settings=some_settings()), [at(5)])
    assert found == NO_READS and found.of(0) == NONE_NAMED
    assert (found.of(0).tombstones_below, found.of(0).backlog_below) == (EVERYTHING, 0)


def test_a_group_has_read_nothing_of_a_log_that_has_gone_on_from_an_earlier_state():
    """C61: but one that has gone on in a later version while the topic was looked at has."""
    log = LOG.with_run("a").with_run("other")

    def read_in(version, run):
        position = at(70)
        cursor = replace(position.cursor, version=version, run=run)
        return read(replace(position, cursor=cursor), log=log).holding[0].offset

    version = topic().version
    assert (read_in(version, "other"), read_in(version, "read"), read_in(version - 1, "read")) == (70, 0, 0)
    assert read_in(version + 1, "later") == 70
