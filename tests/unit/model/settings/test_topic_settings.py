"""Every setting: what it accepts, what it refuses, and what it says then."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from lithify.errors import InvalidSettingError
from lithify.model.settings.table import NO_LIMIT, SETTINGS
from lithify.model.settings.topic_settings import (
    TopicSettings,
    changed,
    changes,
    settings_of,
    stored_settings,
    to_config,
    to_stored,
    unset,
)

ACCEPTED = {
    "compaction.mode": {"in-place": "in-place", "side-by-side": "side-by-side"},
    "cleanup.policy": {
        "compact": "compact",
        "delete": "delete",
        "compact,delete": "compact,delete",
        "delete,compact": "compact,delete",
        " delete , compact ": "compact,delete",
    },
    "compaction.strategy": {"offset": "offset", "timestamp": "timestamp"},
    "compaction.strategy.header": {"": "", "version": "version", "ü v": "ü v"},
    "null.key": {"reject": "reject", "drop": "drop", "retain": "retain"},
    "empty.value": {"value": "value", "tombstone": "tombstone"},
    "delete.retention.ms": {"0": 0, "1d": 86_400_000, 5: 5, "9223372036854775807": 2**63 - 1},
    "tombstone.hold.groups": {"": "", "g": "g", " b, a ,b,": "b,a", "A.b_c-%2F": "A.b_c-%2F"},
    "tombstone.hold.max.ms": {"-1": NO_LIMIT, "0": 0, "7d": 604_800_000},
    "backlog.trim.groups": {"": "", ",": ""},  # one that is named needs a backlog, see below
    "min.cleanable.dirty.ratio": {"0": 0.0, "0.25": 0.25, 1: 1.0},
    "min.compaction.lag.ms": {"0": 0, "30s": 30_000},
    "min.compaction.lag.from": {"timestamp": "timestamp", "commit": "commit"},
    "min.compaction.lag.bytes": {"0": 0, "1MiB": 2**20},
    "max.compaction.lag.ms": {"-1": NO_LIMIT, "7d": 604_800_000},
    "compaction.threshold.bytes": {"-1": NO_LIMIT, "100MiB": 104_857_600},
    "retention.ms": {"-1": NO_LIMIT, "7d": 604_800_000},
    "retention.bytes": {"-1": NO_LIMIT, "1GiB": 2**30},
    "segment.bytes": {"1024": 1024, "128MiB": 134_217_728},
    "segment.max.dead.ratio": {"0": 0.0, "0.3": 0.3, "1": 1.0},
    "key.index.enable": {"true": "true", "false": "false"},
    "compression.type": {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4", "none": "none"},
    "message.timestamp.type": {"CreateTime": "CreateTime", "LogAppendTime": "LogAppendTime"},
    "message.timestamp.after.max.ms": {"0": 0, "1h": 3_600_000},
    "message.ids": {"none": "none", "pulsar": "pulsar"},
    "max.message.bytes": {"1": 1, "1MiB": 2**20},
    "versions.retention.ms": {"0": 0, "1d": 86_400_000},
    "versions.kept": {"1": 1, 20: 20},
    "sweep.grace.ms": {"60000": 60_000, "1d": 86_400_000},
}
REFUSED = {
    "compaction.mode": ["", "inplace", "IN-PLACE"],
    "cleanup.policy": [
        "",
        ",",
        "none",
        "Compact",
        "compact,",
        "compact,compact",
        "compact,delete,delete",
        "compact;delete",
    ],
    "compaction.strategy": ["", "newest", "Timestamp"],
    "compaction.strategy.header": ["\udcff"],
    "null.key": ["", "keep", "None"],
    "empty.value": ["", "null"],
    "delete.retention.ms": ["", "-1", "soon", "9223372036854775808", "1y"],
    "tombstone.hold.groups": ["a b", "a/b", "a,b c"],
    "tombstone.hold.max.ms": ["", "-2", "x"],
    "backlog.trim.groups": ["a b", "a/b"],
    "min.cleanable.dirty.ratio": ["", "-0.1", "1.1", "half", "nan", "inf", "50%"],
    "min.compaction.lag.ms": ["", "-1", "x"],
    "min.compaction.lag.from": ["", "append", "Commit"],
    "min.compaction.lag.bytes": ["", "-1", "x"],
    "max.compaction.lag.ms": ["", "-2", "x"],
    "compaction.threshold.bytes": ["", "-2", "x"],
    "retention.ms": ["", "-2", "x"],
    "retention.bytes": ["", "-2", "x"],
    "segment.bytes": ["", "0", "1023", "-1", "x"],
    "segment.max.dead.ratio": ["", "-0.1", "1.1", "nan", "x"],
    "key.index.enable": ["", "yes", "1"],
    "compression.type": ["", "zip", "uncompressed"],
    "message.timestamp.type": ["", "createtime"],
    "message.timestamp.after.max.ms": ["", "-1", "x"],
    "message.ids": ["", "kafka", "Pulsar"],
    "max.message.bytes": ["", "0", "-1", "x"],
    "versions.retention.ms": ["", "-1", "x"],
    "versions.kept": ["", "0", "-1", "1.5", "many"],
    "sweep.grace.ms": ["", "-1", "x", "0", "59s"],
}


def test_a_refused_value_of_any_length_is_an_error_of_one_screen():
    with pytest.raises(InvalidSettingError, match="10000 are too many") as refused:
        settings_of({"tombstone.hold.groups": ",".join(f"group-{n}" for n in range(10_000))})
    assert len(str(refused.value)) < 400
    assert settings_of({"tombstone.hold.groups": ",".join(map(str, range(100)))}).holding_groups[99] == "99"


def test_every_setting_is_tried_and_every_field_is_a_setting():
    assert set(SETTINGS) == set(ACCEPTED) == set(REFUSED)
    assert {setting.attribute for setting in SETTINGS.values()} == {f.name for f in fields(TopicSettings)}


@pytest.mark.parametrize(
    ("name", "given", "kept"), [(n, g, k) for n, values in ACCEPTED.items() for g, k in values.items()]
)
def test_a_good_value_is_kept(name, given, kept):
    """As text, as a number, with a unit or without."""
    for value in (given, str(given)):
        assert getattr(settings_of({name: value}), SETTINGS[name].attribute) == kept


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in REFUSED.items() for v in values])
def test_a_bad_value_is_refused_with_its_name_and_what_is_accepted(name, value):
    with pytest.raises(InvalidSettingError) as error:
        settings_of({name: value})
    assert error.value.message.startswith(f"{name}={value}: ")
    assert error.value.hint == f"accepted: {SETTINGS[name].accepts}"
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "hint"),
    [("null.kay", "did you mean null.key?"), ("delete_retention_ms", "did you mean delete.retention.ms?")],
)
def test_an_unknown_setting_is_refused_with_the_nearest_one(name, hint):
    with pytest.raises(InvalidSettingError, match=f"{name}: no such setting") as error:
        settings_of({name: "1"})
    assert error.value.hint == hint


def test_a_setting_like_no_other_is_refused_with_all_of_them():
    with pytest.raises(InvalidSettingError) as error:
        settings_of({"qqqqq": "1"})
    assert "null.key" in error.value.hint and "sweep.grace.ms" in error.value.hint


def test_a_least_lag_above_the_most_is_a_contradiction():
    """C14, C28: both are named."""
    with pytest.raises(InvalidSettingError, match=r"min.compaction.lag.ms=11 is above max.compaction.lag.ms=10"):
        settings_of({"min.compaction.lag.ms": 11, "max.compaction.lag.ms": 10})
    settings_of({"min.compaction.lag.ms": 10, "max.compaction.lag.ms": 10})
    settings_of({"min.compaction.lag.ms": 10**12, "max.compaction.lag.ms": -1})


def test_groups_that_let_a_backlog_be_trimmed_need_one():
    """C62."""
    with pytest.raises(InvalidSettingError, match=r"backlog.trim.groups=g,h needs compaction.mode=side-by-side"):
        settings_of({"backlog.trim.groups": "g, h"})
    settings = settings_of({"backlog.trim.groups": "g, h", "compaction.mode": "side-by-side"})
    assert settings.trimming_groups == ("g", "h") and settings.retains


SETTINGS_OF_FORMAT_3 = {
    "cleanup.policy",
    "compaction.mode",
    "compaction.strategy",
    "compaction.strategy.header",
    "compaction.threshold.bytes",
    "compression.type",
    "delete.retention.ms",
    "empty.value",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.bytes",
    "min.compaction.lag.from",
    "min.compaction.lag.ms",
    "null.key",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "sweep.grace.ms",
    "versions.kept",
    "versions.retention.ms",
}


def test_topics_without_groups_are_stored_as_before_there_were_such_settings():
    """C61: and an earlier Lithify, which would not hold tombstones, refuses those that name some."""
    stored = to_stored(TopicSettings()).keys()
    assert stored == SETTINGS_OF_FORMAT_3, "add a new setting to _STORED_IF_SET"
    later = {"tombstone.hold.groups": "g", "tombstone.hold.max.ms": "5", "backlog.trim.groups": "h"}
    assert not later.keys() & to_stored(TopicSettings()).keys()
    named = settings_of({**later, "compaction.mode": "side-by-side"})
    assert later.items() <= to_stored(named).items()
    assert stored_settings(to_stored(named)) == named


def test_a_contradiction_with_a_setting_of_before_is_one_as_well():
    with pytest.raises(InvalidSettingError, match="above"):
        changed(settings_of({"max.compaction.lag.ms": 10}), {"min.compaction.lag.ms": 11})


def test_the_defaults_are_those_of_kafka():
    """As docs/reference/settings.md has them."""
    assert settings_of({}) == TopicSettings()
    assert settings_of({}, like="mapr") == settings_of({"min.compaction.lag.from": "commit"})
    assert to_config(TopicSettings()) == {
        "compaction.mode": "in-place",
        "cleanup.policy": "compact",
        "compaction.strategy": "offset",
        "compaction.strategy.header": "",
        "null.key": "reject",
        "empty.value": "value",
        "delete.retention.ms": "86400000",
        "tombstone.hold.groups": "",
        "tombstone.hold.max.ms": "604800000",
        "backlog.trim.groups": "",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "min.compaction.lag.from": "timestamp",
        "min.compaction.lag.bytes": "0",
        "max.compaction.lag.ms": "-1",
        "compaction.threshold.bytes": "-1",
        "retention.ms": "604800000",
        "retention.bytes": "-1",
        "segment.bytes": "134217728",
        "segment.max.dead.ratio": "0.33",
        "key.index.enable": "false",
        "compression.type": "zstd",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": "3600000",
        "message.ids": "none",
        "max.message.bytes": "1048588",
        "versions.retention.ms": "86400000",
        "versions.kept": "20",
        "sweep.grace.ms": "86400000",
    }


def test_the_preset_of_pulsar():
    """As docs/reference/settings.md has them; what is given goes before it."""
    settings = settings_of({}, like="pulsar")
    assert (settings.compaction_mode, settings.null_key, settings.empty_value) == ("side-by-side", "drop", "tombstone")
    assert (settings.delete_retention_ms, settings.compaction_threshold_bytes) == (0, 104_857_600)
    assert settings.min_cleanable_dirty_ratio == 1.0
    assert settings_of({"compaction.mode": "in-place"}, like="pulsar") == replace(settings, compaction_mode="in-place")


@pytest.mark.parametrize(
    ("policy", "compacts", "deletes"),
    [("compact", True, False), ("delete", False, True), ("compact,delete", True, True), ("delete,compact", True, True)],
)
def test_a_policy_says_what_is_done(policy, compacts, deletes):
    """C23: in either order."""
    settings = settings_of({"cleanup.policy": policy})
    assert (settings.compacts, settings.deletes) == (compacts, deletes)


def test_the_header_strategy_needs_the_name_of_a_header():
    """C10: also where the name is taken away later; the name alone is no contradiction."""
    with pytest.raises(InvalidSettingError, match=r"compaction\.strategy=header needs compaction\.strategy\.header"):
        settings_of({"compaction.strategy": "header"})
    settings = settings_of({"compaction.strategy": "header", "compaction.strategy.header": "v"})
    with pytest.raises(InvalidSettingError, match="needs"):
        changed(settings, {"compaction.strategy.header": ""})
    with pytest.raises(InvalidSettingError, match="needs"):
        changed(unset(settings, ["compaction.strategy.header"]), {})
    assert settings_of({"compaction.strategy.header": "v"}).compaction_strategy == "offset"


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_view_needs_a_policy_that_compacts(policy):
    """C33, C23."""
    assert settings_of({"compaction.mode": "side-by-side", "cleanup.policy": policy}).side_by_side
    with pytest.raises(InvalidSettingError, match=r"side-by-side needs compact in cleanup\.policy, but it is delete"):
        settings_of({"compaction.mode": "side-by-side", "cleanup.policy": "delete"})
    with pytest.raises(InvalidSettingError, match="side-by-side needs compact"):
        changed(settings_of({"cleanup.policy": "delete"}), {"compaction.mode": "side-by-side"})


def test_unset_takes_the_default_of_the_program_not_of_the_preset():
    """C43: one name or several, and no other setting."""
    settings = settings_of({"null.key": "retain", "segment.bytes": 2048, "retention.ms": 5})
    assert unset(settings, ["null.key", "segment.bytes"]) == settings_of({"retention.ms": 5})
    assert unset(settings_of({}, like="pulsar"), ["delete.retention.ms"]).delete_retention_ms == 86_400_000
    assert unset(settings, []) == settings


def test_an_unknown_name_to_unset_is_refused_with_the_nearest_one():
    """C43: and nothing is unset."""
    with pytest.raises(InvalidSettingError, match=r"nul\.key: no such setting") as error:
        unset(TopicSettings(), ["null.key", "nul.key"])
    assert error.value.hint == "did you mean null.key?"


def test_changes_names_what_differs_in_the_order_of_the_table():
    """C43: a setting that is set to what it was is no change."""
    before = settings_of({"null.key": "drop"})
    after = changed(before, {"retention.ms": 5, "cleanup.policy": "delete,compact", "null.key": "drop"})
    assert changes(before, after) == ("cleanup.policy", "retention.ms")
    assert changes(after, changed(after, {"cleanup.policy": "compact,delete", "retention.ms": "5ms"})) == ()


def test_an_unknown_preset_is_refused():
    with pytest.raises(InvalidSettingError, match="rabbit") as error:
        settings_of({}, like="rabbit")
    assert error.value.hint == "accepted: kafka, pulsar, mapr"


def test_a_header_that_is_no_text_is_read_where_an_earlier_version_stored_it():
    stored = stored_settings({"compaction.strategy": "header", "compaction.strategy.header": "v\udcff"})
    assert stored.compaction_strategy_header == "v?"


def test_settings_read_back_as_they_were_written():
    settings = settings_of({name: list(values)[-1] for name, values in ACCEPTED.items()})
    assert settings_of(to_config(settings)) == settings
