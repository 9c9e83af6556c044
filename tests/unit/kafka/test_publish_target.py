"""With which settings `publish` creates a target, and which targets it refuses."""

from __future__ import annotations

import pytest

from lithify.errors import RefusedError
from lithify.kafka.publisher.target import ANY_SIZE, FOREVER_MS, Source, Wanted, _check_keeps, new_config
from lithify.model.settings.topic_settings import settings_of


def test_a_target_gets_the_settings_of_the_topic_with_those_that_are_given_over_them() -> None:
    own = settings_of({"min.cleanable.dirty.ratio": 0.2, "max.compaction.lag.ms": 9, "max.message.bytes": 2_000_000})
    assert new_config(Source(own), {"segment.ms": "7"}) == {
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
    assert "max.message.bytes" not in new_config(Source(settings_of({"max.message.bytes": ANY_SIZE})), {})


def test_a_topic_that_keeps_everything_gets_no_default_retention_with_a_policy_that_deletes() -> None:
    kept = new_config(Source(settings_of({})), {"cleanup.policy": "compact,delete"})
    assert (kept["retention.ms"], kept["retention.bytes"]) == ("-1", "-1")
    given = new_config(Source(settings_of({})), {"cleanup.policy": "compact,delete", "retention.ms": "5"})
    assert given["retention.ms"] == "5"


def test_a_target_that_is_there_with_other_settings_is_refused() -> None:
    wanted = Wanted("t", {"retention.ms": "5"})
    wanted.check({"retention.ms": "5", "segment.ms": "1"})
    with pytest.raises(RefusedError, match=r"Kafka's t exists already, with retention\.ms=6"):
        wanted.check({"retention.ms": "6"})


THEIRS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "604800000",
    "max.message.bytes": "2097152",
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
    "message.timestamp.type": "LogAppendTime",
    "message.format.version": "2.8-IV1",
    "leader.replication.throttled.replicas": "0:1",
}
COPY = settings_of({"cleanup.policy": "compact", "max.message.bytes": ANY_SIZE, "min.cleanable.dirty.ratio": 0.5})


def test_a_target_gets_what_was_set_on_the_topic_that_was_copied() -> None:
    """Only what is of the other cluster, or would change timestamps, is left behind."""
    made = new_config(Source(COPY, THEIRS), {"segment.ms": "7"})
    assert made == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "604800000",
        "retention.bytes": "-1",
        "max.message.bytes": "2097152",
        "segment.ms": "7",
        "min.cleanable.dirty.ratio": "0.1",
        "delete.retention.ms": "86400000",
        "min.compaction.lag.ms": "0",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(FOREVER_MS),
    }


def test_a_setting_of_the_copied_topic_is_left_out_where_it_is_given_without_a_value() -> None:
    made = new_config(Source(COPY, THEIRS), {"segment.ms": ""})
    assert "segment.ms" not in made
    Wanted("t", {"segment.ms": ""}).check({"segment.ms": "604800000"})  # the same command again


def test_a_target_may_delete_what_the_copied_topic_deleted_and_nothing_else() -> None:
    wanted, source = Wanted("t"), Source(COPY, THEIRS)
    there = new_config(source, {})
    _check_keeps(wanted, there, source)
    with pytest.raises(RefusedError, match=r"deletes old records \(retention\.ms=5\)"):
        _check_keeps(wanted, there | {"retention.ms": "5"}, source)
    with pytest.raises(RefusedError, match=r"deletes old records \(retention\.ms=604800000\)"):
        _check_keeps(wanted, there, Source(COPY))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", "7d", "604800000"),
        ("segment.ms", "-1", "-1"),
        ("max.message.bytes", "2MiB", "2097152"),
        ("retention.bytes", "4096", "4096"),
        ("retention.ms", "", ""),  # leaves out what the copied topic had
        ("retention.ms", "soon", "soon"),  # Kafka's error names it
        ("cleanup.policy", "compact,delete", "compact,delete"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
    ],
)
def test_durations_and_sizes_may_have_units(name, text, value):
    """Kafka answered `retention.ms=7d`, which every other --config takes, with "Not a number of type LONG"."""
    assert Wanted.given("t", {name: text}, None).config == {name: value}
