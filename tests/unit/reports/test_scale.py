"""The offsets of a log on a line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.cli.terminal.drawing import results
from lithify.reports.status import scale
from lithify.service.look.status import topic_status
from support.topics.memory_topic import MemoryTopic


@pytest.fixture
def status():
    topic = MemoryTopic()
    return topic_status(topic.warehouse, topic.state)


def drawn(status, start, gone, dirty, horizon, end):
    return scale(
        replace(
            status.logs[0],
            log_start_offset=start,
            delete_retention_point=gone,
            first_dirty_offset=dirty,
            horizon=horizon,
            log_end_offset=end,
        )
    )


def test_it_names_the_parts_of_a_log(status):
    assert drawn(status, 0, 80, 120, 180, 1_200) == (
        "S 0 ── clean, deletes removed ── R 80 ── clean ── D 120 ── dirty ── H 180 ── too young ── E 1,200"
    )
    assert drawn(status, 7, 0, 120, 180, 180) == "S 7 ── clean ── D 120 ── dirty ── H=E 180"
    assert drawn(status, 0, 120, 120, 180, 180) == "S 0 ── clean, deletes removed ── R=D 120 ── dirty ── H=E 180"


def test_a_retention_point_in_the_dirty_part_is_drawn_where_it_is(status):
    """As after a round was undone, or a view dropped."""
    assert drawn(status, 0, 100, 0, 180, 180) == "S=D 0 ── dirty ── R 100 ── dirty ── H=E 180"


def test_a_horizon_below_the_first_dirty_offset_splits_nothing(status):
    assert drawn(status, 0, 0, 180, 120, 200) == "S 0 ── clean ── H 120 ── clean ── D 180 ── too young ── E 200"


@pytest.mark.parametrize("offsets", [(0, 0, 0, 0, 0), (5, 0, 5, 9, 9), (0, 0, 9, 9, 9), (0, 0, 0, 0, 9)])
def test_a_log_of_one_part_has_no_line(status, offsets):
    assert drawn(status, *offsets) == ""


def test_a_line_that_does_not_fit_is_left_out_and_the_note_stays(status, monkeypatch):
    log = replace(status.logs[0], delete_retention_point=80, first_dirty_offset=120, horizon=180, log_end_offset=200)
    status = replace(status, logs=(log,))
    monkeypatch.setenv("COLUMNS", "120")
    wide = results(status.page())
    assert [line for line in wide if "R 80" in line] == [f"     {scale(log)}"]
    monkeypatch.setenv("COLUMNS", "60")
    narrow = results(status.page())
    assert not any("──" in line for line in narrow)
    assert "deletes below 80 may have been removed" in " ".join(" ".join(narrow).split())


def test_a_topic_without_rounds_has_none():
    topic = MemoryTopic(cleanup_policy="delete")
    status = topic_status(topic.warehouse, topic.state)
    log = replace(status.logs[0], first_dirty_offset=120, horizon=180, log_end_offset=200)
    assert not any("──" in line for line in results(replace(status, logs=(log,)).page()))
