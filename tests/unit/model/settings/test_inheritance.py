"""What a topic's own settings are after a change (C56)."""

from __future__ import annotations

import pytest

from lithify.model.settings.inheritance import after_change
from lithify.model.settings.topic_settings import TopicSettings


@pytest.mark.parametrize("inherited", [None, {}], ids=["an unknown stream", "a stream"])
def test_names_of_own_settings_can_be_hashed_as_states_are(inherited):
    _, own = after_change(TopicSettings(), {"ttl", "null.key"}, inherited, {"segment.bytes": 1 << 20}, ["null.key"])
    assert (type(own), own) == (frozenset, {"ttl", "segment.bytes"})
