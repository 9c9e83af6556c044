"""Names of Kafka's brokers and of MapR's streams are answered with what is there instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lithify.errors import InvalidSettingError
from lithify.errors.words import in_python
from lithify.model.settings import foreign
from lithify.model.settings.foreign import counterpart
from lithify.model.settings.stream_attributes import ATTRIBUTES, StreamAttributes, with_attributes
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import settings_of


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("log.cleaner.min.cleanable.ratio", "the setting of a topic is min.cleanable.dirty.ratio"),
        ("cleaner.delete.retention.ms", "the setting of a topic is delete.retention.ms"),
        ("log.cleaner.threads", "`lake.cleaner(threads=...)`"),
        ("cleaner.dedupe.buffer.size", "task_memory="),
        ("log.retention.hours", "retention.ms, which takes units"),
        ("segment.ms", "there is no active segment"),
        ("min.insync.replicas", "the store replicates the data"),
    ],
)
def test_a_brokers_name_is_answered(name, instead):
    with pytest.raises(InvalidSettingError) as refused:
        settings_of({name: "1"})
    assert instead in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["log.cleaner.threads", "cleaner.dedupe.buffer.size", "log.retention.hours"])
def test_a_stream_answers_a_brokers_name_as_a_topic_does(name):
    with pytest.raises(InvalidSettingError) as of_a_topic:
        settings_of({name: "1"})
    with pytest.raises(InvalidSettingError) as of_a_stream:
        with_attributes(StreamAttributes(), {name: "1"})
    assert of_a_stream.value.hint == of_a_topic.value.hint


def test_every_attribute_of_maprs_page_is_taken_or_answered():
    page = Path(__file__).parents[4] / "docs" / "reference" / "from-mapr.md"
    rows = page.read_text().partition("## Parameters of a stream")[2].splitlines()
    names = [name for row in rows if row.startswith("| `-") for name in re.findall(r"`-(\w+)`", row.split(" | ")[0])]
    assert len(names) > 15
    assert [name for name in names if name not in ATTRIBUTES and counterpart(name) is None] == []


@pytest.mark.parametrize("name", ["produceperm", "adminperm", "pidexpirysecs", "ischangelog", "copymetafrom"])
def test_a_stream_says_what_is_there_instead_of_an_attribute_of_maprs(name):
    with pytest.raises(InvalidSettingError) as refused:
        with_attributes(StreamAttributes(), {name: "u:root"})
    assert refused.value.hint == in_python(counterpart(name) or "")


@pytest.mark.parametrize("name", sorted(ATTRIBUTES))
def test_a_topic_answers_every_attribute_of_streams(name):
    with pytest.raises(InvalidSettingError) as refused:
        settings_of({name: "1"})
    hint = refused.value.hint or ""
    setting = ATTRIBUTES[name].setting
    assert f"the setting of a topic is {setting}" in hint if setting else "attribute of streams" in hint


def test_every_setting_that_is_named_exists():
    hints = [*foreign._TOPICS.values(), *(hint.partition(" topic is ")[2] for hint in foreign._CLEANER.values())]
    named = {match[0] for hint in hints for match in re.finditer(r"^[a-z]+(\.[a-z]+)+", hint)}
    assert named and named <= set(SETTINGS)


def test_other_names_have_no_counterpart():
    assert [counterpart(name) for name in ("cleaner.x", "log.cleaner.", "min.cleanable.dirty.ratio", "")] == [None] * 4


def test_the_policy_of_the_first_cleaner_is_named():
    with pytest.raises(InvalidSettingError, match=r"dedupe.*compact"):
        settings_of({"cleanup.policy": "dedupe"})
