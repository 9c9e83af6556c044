"""The attributes of a stream, what its topics inherit, and which attributes contradict (C56)."""

from __future__ import annotations

import pytest

from lithify.errors import InvalidSettingError
from lithify.model.settings.inheritance import Origin, in_force, inheriting, origins, own_names
from lithify.model.settings.stream_attributes import ATTRIBUTES, INHERITABLE, StreamAttributes, keeps, with_attributes
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import TopicSettings, settings_of, to_config

NONE = StreamAttributes()
DAY = 86_400_000

COMBINATIONS = {
    "compact=false ttl=0": ("delete", -1, "every record, for ever"),
    "compact=false ttl=7d": ("delete", 7 * DAY, "every record, for 7 d"),
    "compact=true ttl=0": ("compact", -1, "the latest record of every key, for ever"),
    "compact=true ttl=7d": (
        "compact",
        7 * DAY,
        "the latest record of every key, for ever: ttl has no effect, as only cleanup.policy=compact,delete expires "
        "live keys",
    ),
    "cleanup.policy=compact,delete ttl=7d": ("compact,delete", 7 * DAY, "the latest record of every key, for 7 d"),
    "cleanup.policy=compact,delete compact=true ttl=0": (
        "compact,delete",
        -1,
        "the latest record of every key, for ever",
    ),
    "": ("compact", 7 * DAY, "the latest record of every key, for ever"),
    "cleanup.policy=delete retention.bytes=9": (
        "delete",
        7 * DAY,
        "every record, for 7 d, in 9 bytes of each log at most",
    ),
}


def attributes(text: str) -> StreamAttributes:
    return with_attributes(NONE, dict(pair.split("=", 1) for pair in text.split()))


@pytest.mark.parametrize("text", COMBINATIONS)
def test_what_a_stream_keeps(text: str) -> None:
    """C56: no live key of a compacted topic expires unless the policy says so."""
    policy, retention_ms, what = COMBINATIONS[text]
    found = attributes(text)
    assert (found.settings.cleanup_policy, found.settings.retention_ms, keeps(found)) == (policy, retention_ms, what)


@pytest.mark.parametrize(
    ("name", "text", "stored", "inherited"),
    [
        ("compact", "TRUE", "true", {"cleanup.policy": "compact"}),
        ("compact", "false", "false", {"cleanup.policy": "delete"}),
        (
            "mincompactionlag",
            "1h",
            "3600000",
            {"min.compaction.lag.ms": "3600000", "min.compaction.lag.from": "commit"},
        ),
        ("deleteretention", 5, "5", {"delete.retention.ms": "5"}),
        ("ttl", 30, "30", {"retention.ms": "30000"}),
        ("ttl", "2d", "172800", {"retention.ms": "172800000"}),
        ("ttl", "0", "0", {"retention.ms": "-1"}),
        ("defaultpartitions", "4", "4", {}),
        ("autocreate", "true", "true", {}),
        ("compression", "off", "none", {"compression.type": "none"}),
        ("compression", "zlib", "gzip", {"compression.type": "gzip"}),
        ("compression", "lz4", "lz4", {"compression.type": "lz4"}),
        ("defaulttimestamptype", "logappendtime", "LogAppendTime", {"message.timestamp.type": "LogAppendTime"}),
        ("cleanup.policy", "delete,compact", "compact,delete", {"cleanup.policy": "compact,delete"}),
        ("segment.bytes", "1MiB", "1048576", {"segment.bytes": "1048576"}),
    ],
)
def test_an_attribute_is_stored_in_one_form(name: str, text: object, stored: str, inherited: dict[str, str]) -> None:
    """C56: and read again it is the same."""
    found = with_attributes(NONE, {name: text})
    assert (found.given, found.inherited) == ({name: stored}, inherited)
    assert with_attributes(NONE, found.given) == found
    assert found.value(name) == stored
    assert found.is_given(name)
    assert not NONE.is_given(name)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("compat=true", "did you mean compact[?]"),
        ("cleanup.polcy=compact", "did you mean cleanup.policy[?]"),
        ("nonsense=1", "known: compact, mincompactionlag"),
        ("compact=yes", "accepted: true or false"),
        ("ttl=-1", "not a whole number of seconds"),
        ("ttl=500ms", "not a whole number of seconds"),
        ("ttl=99999999999999999", "not a whole number of seconds"),
        ("ttl=soon", "accepted: seconds"),
        ("ttl=²", "'²' is not a duration such as"),
        (f"ttl={'9' * 5_000}", "is not a duration such as"),
        ("defaultpartitions=²", "'²' is not a whole number"),
        ("defaultpartitions=many", "'many' is not a whole number"),
        (f"defaultpartitions={'9' * 5_000}", "is not a whole number"),
        ("defaultpartitions=0", "accepted: a number from 1 to 10000"),
        ("defaultpartitions=10001", "accepted: a number from 1 to 10000"),
        ("compression=lzf", "accepted: zstd"),
        ("defaulttimestamptype=none", "accepted: CreateTime or LogAppendTime"),
        ("message.ids=pulsar", "not an attribute of a stream"),
        ("compact=true cleanup.policy=delete", "compact=true contradicts cleanup.policy=delete"),
        ("compact=false cleanup.policy=compact,delete", "compact=false contradicts"),
        ("ttl=10 retention.ms=9999", "ttl=10 contradicts retention.ms=9999"),
        ("ttl=0 retention.ms=7d", "ttl=0 contradicts"),
        ("mincompactionlag=1 min.compaction.lag.ms=2", "mincompactionlag=1 contradicts"),
        ("deleteretention=1 delete.retention.ms=2", "deleteretention=1 contradicts"),
        ("compression=lz4 compression.type=zstd", "compression=lz4 contradicts"),
        ("defaulttimestamptype=CreateTime message.timestamp.type=LogAppendTime", "contradicts"),
        ("compact=false compaction.mode=side-by-side", "side-by-side needs compact"),
        ("mincompactionlag=2d max.compaction.lag.ms=1d", "is above max.compaction.lag.ms"),
    ],
)
def test_what_is_unknown_or_contradicts_is_refused(text: str, error: str) -> None:
    """C56."""
    with pytest.raises(InvalidSettingError) as refused:
        attributes(text)
    assert refused.match(error)


@pytest.mark.parametrize(
    ("text", "counts_from"),
    [
        ("", "timestamp"),
        ("min.compaction.lag.ms=1h", "timestamp"),
        ("mincompactionlag=1h", "commit"),
        ("mincompactionlag=1h min.compaction.lag.ms=1h", "commit"),
        ("mincompactionlag=1h min.compaction.lag.from=timestamp", "timestamp"),
        ("min.compaction.lag.from=commit", "commit"),
    ],
)
def test_the_lag_of_mapr_counts_from_the_write(text: str, counts_from: str) -> None:
    """C14: HPE's page counts it from there; Kafka's own setting counts from the timestamps, as Kafka does."""
    found = attributes(text)
    assert found.settings.min_compaction_lag_from == found.value("min.compaction.lag.from") == counts_from
    assert found.is_given("min.compaction.lag.from") == ("mincompactionlag" in text or "from" in text)


@pytest.mark.parametrize(
    "text",
    ["compact=true cleanup.policy=compact,delete", "ttl=10 retention.ms=10s", "ttl=0 retention.ms=-1"],
)
def test_what_says_the_same_twice_is_accepted(text: str) -> None:
    attributes(text)


def test_attributes_are_changed_as_a_whole() -> None:
    """C56: one that contradicts what is set needs that to go in the same change."""
    before = attributes("cleanup.policy=compact ttl=7d autocreate=true")
    with pytest.raises(InvalidSettingError):
        with_attributes(before, {"compact": "false"})
    after = with_attributes(before, {"compact": "false"}, ["cleanup.policy", "ttl", "compression"])
    assert after.given == {"autocreate": "true", "compact": "false"}
    with pytest.raises(InvalidSettingError, match="did you mean ttl"):
        with_attributes(before, {}, ["tll"])


def test_every_value_is_shown_with_its_origin() -> None:
    """C56: an attribute and its setting are one value, whichever was set."""
    found = attributes("cleanup.policy=compact,delete retention.ms=1500 compression=lz4")
    shown = {name: found.value(name) for name in ATTRIBUTES}
    assert shown == {
        "compact": "true",
        "mincompactionlag": "0",
        "deleteretention": "86400000",
        "ttl": "1.5",
        "defaultpartitions": "1",
        "autocreate": "false",
        "compression": "lz4",
        "defaulttimestamptype": "CreateTime",
    }
    given = [name for name in (*ATTRIBUTES, *INHERITABLE) if found.is_given(name)]
    assert given == ["compact", "ttl", "compression", "cleanup.policy", "retention.ms", "compression.type"]
    assert {name: found.value(name) for name in INHERITABLE} == {
        name: value for name, value in to_config(found.settings).items() if name in INHERITABLE
    }
    assert set(SETTINGS) - set(INHERITABLE) == {"message.ids"}


def test_own_settings_come_before_inherited_ones() -> None:
    """C56."""
    inherited = attributes("compact=false ttl=30 compression=lz4").inherited
    made = in_force({"retention.ms": "9", "null.key": "drop"}, inherited)
    own = frozenset({"retention.ms", "null.key"})
    assert made == settings_of(
        {"cleanup.policy": "delete", "retention.ms": 9, "null.key": "drop", "compression.type": "lz4"}
    )
    assert inheriting(made, own, inherited) == made
    assert inheriting(made, own, {}) == settings_of({"retention.ms": 9, "null.key": "drop"})
    assert inheriting(made, frozenset(), inherited).retention_ms == 30_000
    with pytest.raises(InvalidSettingError, match="side-by-side needs compact"):
        inheriting(settings_of({"compaction.mode": "side-by-side"}), {"compaction.mode"}, inherited)


def test_where_a_value_comes_from() -> None:
    """C56."""
    inherited = attributes("deleteretention=1d compression=lz4").inherited
    settings = settings_of({"retention.ms": 9, "compression.type": "lz4", "versions.kept": 3})
    found = origins(settings, frozenset({"retention.ms", "null.key"}), inherited)
    assert {name: origin for name, origin in found.items() if origin is not Origin.DEFAULT} == {
        "retention.ms": Origin.TOPIC,
        "null.key": Origin.TOPIC,
        "delete.retention.ms": Origin.STREAM,  # it says what is the default
        "compression.type": Origin.STREAM,
        "versions.kept": Origin.STREAM,  # it said so before
    }
    assert list(found) == list(SETTINGS)


def test_own_settings_of_a_topic_without_a_list_are_those_that_differ() -> None:
    """C56: topics of an earlier Lithify keep what they have."""
    settings = settings_of({"retention.ms": 9, "compression.type": "zstd"}, like="pulsar")
    assert own_names(None, settings) == {
        *("retention.ms", "compaction.mode", "null.key", "empty.value", "delete.retention.ms"),
        *("min.cleanable.dirty.ratio", "compaction.threshold.bytes"),
    }
    assert own_names(["null.key"], settings) == {"null.key"}
    assert own_names(None, TopicSettings()) == frozenset()
