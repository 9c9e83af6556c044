"""With which settings `publish` creates a target, and which targets it refuses."""

from __future__ import annotations

import pytest

from lithify.errors import RefusedError
from lithify.kafka.publisher.target import ANY_SIZE, FOREVER_MS, Wanted, new_config
from lithify.model.settings.topic_settings import settings_of


def test_a_target_gets_the_settings_of_the_topic_with_those_that_are_given_over_them() -> None:
    own = settings_of({"min.cleanable.dirty.ratio": 0.2, "max.compaction.lag.ms": 9, "max.message.bytes": 2_000_000})
    assert new_config(own, {"segment.ms": "7"}) == {
        "cleanup.policy": "compact",
        "delete.retention.ms": "86400000",
        "min.cleanable.dirty.ratio": "0.2",
        "min.compaction.lag.ms": "0",
        "max.compaction.lag.ms": "9",
        "max.message.bytes": "2004096",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(FOREVER_MS),
        "segment.ms": "7",
    }


def test_a_copy_that_takes_any_size_says_nothing_of_sizes() -> None:
    """Before, its target took records of 1 GB."""
    assert "max.message.bytes" not in new_config(settings_of({"max.message.bytes": ANY_SIZE}), {})


def test_a_topic_that_keeps_everything_gets_no_default_retention_with_a_policy_that_deletes() -> None:
    kept = new_config(settings_of({}), {"cleanup.policy": "compact,delete"})
    assert (kept["retention.ms"], kept["retention.bytes"]) == ("-1", "-1")
    given = new_config(settings_of({}), {"cleanup.policy": "compact,delete", "retention.ms": "5"})
    assert given["retention.ms"] == "5"


def test_a_target_that_is_there_with_other_settings_is_refused() -> None:
    wanted = Wanted("t", {"retention.ms": "5"})
    wanted.check({"retention.ms": "5", "segment.ms": "1"})
    with pytest.raises(RefusedError, match=r"Kafka's t is there already, with retention\.ms=6"):
        wanted.check({"retention.ms": "6"})
