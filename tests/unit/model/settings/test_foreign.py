"""Names of Kafka's brokers are answered with what is there instead."""

from __future__ import annotations

import re

import pytest

from lithify.errors import InvalidSettingError
from lithify.model.settings import foreign
from lithify.model.settings.foreign import counterpart
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import settings_of


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("log.cleaner.min.cleanable.ratio", "the setting of a topic is min.cleanable.dirty.ratio"),
        ("cleaner.delete.retention.ms", "the setting of a topic is delete.retention.ms"),
        ("log.cleaner.threads", "`lithify cleaner run --threads`"),
        ("cleaner.dedupe.buffer.size", "--task-memory"),
        ("log.retention.hours", "retention.ms, which takes units"),
    ],
)
def test_a_brokers_name_is_answered(name, instead):
    with pytest.raises(InvalidSettingError) as refused:
        settings_of({name: "1"})
    assert instead in (refused.value.hint or "")


def test_every_setting_that_is_named_exists():
    hints = [*foreign._TOPICS.values(), *(hint.partition(" topic is ")[2] for hint in foreign._CLEANER.values())]
    named = {match[0] for hint in hints for match in re.finditer(r"^[a-z]+(\.[a-z]+)+", hint)}
    assert named and named <= set(SETTINGS)


def test_other_names_have_no_counterpart():
    assert [counterpart(name) for name in ("cleaner.x", "log.cleaner.", "min.cleanable.dirty.ratio", "")] == [None] * 4


def test_the_policy_of_the_first_cleaner_is_named():
    with pytest.raises(InvalidSettingError, match=r"dedupe.*compact"):
        settings_of({"cleanup.policy": "dedupe"})
