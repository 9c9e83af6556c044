"""`lithify topic alter` and `topic uncompact`, and what it says that a changed setting means (C22, C35, C43)."""

from __future__ import annotations

import pytest

LATE = (
    "after a tombstone was removed, a late record that it would have beaten counts as new: set delete.retention.ms "
    "longer than records are late\n"
)


def produce(lithify, topic, *lines):
    lithify("produce", topic, "--format", "tsv", stdin="\n".join(lines))


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    produce(lithify, "orders", "a\t1", "a\t2")
    return lithify


def alter(lithify, *config, topic="orders"):
    return lithify("topic", "alter", topic, *(part for c in config for part in ("--config", c))).err


def test_settings_and_partitions_change_in_one_commit(orders):
    """C43: the log with records is due once."""
    said = orders(
        "topic", "alter", "orders", "--config", "delete.retention.ms=1h", "--config", "null.key=drop", "--partitions", 3
    )
    assert said.out == ""
    assert said.err == (
        "orders: changed, version 3\n"
        "  null.key  reject → drop\n"
        "  delete.retention.ms  86400000 = 24 h → 3600000 = 1 h\n"
        "  partitions  1 → 3\n"
        "it applies from the next round; 1 log is due for it at any dirty ratio; removed records are not restored\n"
        "the next round removes the records without a key\n"
        "2 new partitions: existing records remain where they are, but their keys may move to another partition\n"
    )
    first, *new = orders("status", "orders", "--json").json["logs"]
    assert (first["owed"], first["due"]) == ("changed: null.key, delete.retention.ms", True)
    assert [(log["owed"], log["due"]) for log in new] == [(None, False)] * 2
    unset = orders("topic", "alter", "orders", "--unset", "null.key", "--json").json
    assert unset == {
        "topic": "orders",
        "version": 4,
        "changed": True,
        "settings": {"null.key": {"before": "drop", "after": "reject"}},
        "partitions": 3,
        "partitions_after": 3,
        "logs_due": 1,
        "own": [],
        "inherited": ["null.key"],
    }
    again = orders("topic", "alter", "orders", "--unset", "null.key", "--partitions", 3)
    assert again.err == "orders: nothing to change, still version 4\n"


def test_late_records_are_reported_where_a_strategy_lets_them_win(orders):
    """C22: create and alter say so."""
    assert alter(orders, "compaction.strategy=timestamp").endswith(LATE)
    assert LATE not in alter(orders, "compaction.strategy=offset")
    made = orders("topic", "create", "t", "--config", "compaction.strategy=timestamp")
    assert made.err == f"t: created with 1 partition, compaction.strategy=timestamp\n{LATE}"
    assert LATE not in orders("topic", "create", "u").err


NOTES = {
    "cleanup.policy=compact,delete": (
        "`lithify retain`, and every round, now removes records past retention.ms=604800000 and retention.bytes=-1"
    ),
    "cleanup.policy=delete": "rounds no longer compact it",
    "empty.value=tombstone": "from now on empty values delete their keys, even values appended before",
    "compaction.mode=side-by-side": (
        "from now on the log remains as written, and the next round creates the compacted view beside it"
    ),
}


@pytest.mark.parametrize("change", NOTES)
def test_what_a_change_means_is_reported(orders, change):
    assert alter(orders, change).splitlines()[-1] == NOTES[change]


def test_a_topic_that_was_only_retained_is_compacted_from_its_start(lithify):
    lithify("topic", "create", "events", "--config", "cleanup.policy=delete")
    produce(lithify, "events", "a\t1")
    assert alter(lithify, "cleanup.policy=compact", topic="events").splitlines()[-1] == (
        "the next round starts at the log start"
    )


def test_what_contradicts_or_shrinks_is_refused_and_changes_nothing(orders):
    command = ("topic", "alter", "orders")
    assert orders.error(*command) == (
        "nothing to change: pass --config, --unset or --partitions (see `lithify topic alter --help`)"
    )
    assert orders.error(*command, "--partitions", 0) == (
        "orders has 1 partition and cannot be changed to 0 (set a higher number: removing partitions would remove "
        "records)"
    )
    assert orders.error(*command, "--partitions", 20_000) == "partitions=20000: a topic has 1 to 10000"
    assert orders.error(*command, "--unset", "segment.byte") == (
        "segment.byte: no such setting (did you mean segment.bytes?)"
    )
    assert orders.error(*command, "--config", "null.key=drop", "--unset", "null.key") == (
        "null.key is given with both --config and --unset (use only one of them)"
    )
    assert orders.error(*command, "--config", "compaction.strategy=header") == (
        "compaction.strategy=header needs compaction.strategy.header (set it to the header that has the order of a "
        "record)"
    )
    both = ("--config", "compaction.mode=side-by-side", "--config", "cleanup.policy=delete")
    assert orders.error(*command, *both).startswith(
        "compaction.mode=side-by-side needs compact in cleanup.policy, but it is delete"
    )
    lags = ("--config", "min.compaction.lag.ms=2h", "--config", "max.compaction.lag.ms=1h")
    assert "is above max.compaction.lag.ms=3600000" in orders.error(*command, *lags)
    assert orders("topic", "info", "orders", "--json").json["version"] == 2


def test_what_kafka_configs_takes(orders):
    command = ("topic", "alter", "orders")
    given = orders(*command, "--add-config", "cleanup.policy=[compact,delete],retention.ms=7d, segment.bytes=1MiB")
    assert given.out == "" and "cleanup.policy  compact → compact,delete" in given.err
    config = orders("topic", "info", "orders", "--json").json["config"]
    assert (config["cleanup.policy"], config["segment.bytes"]) == ("compact,delete", "1048576")
    assert orders.error(*command, "--delete-config", "cleanup.policy, x").startswith("x: no such setting")
    assert "cleanup.policy  compact,delete → compact" in orders(*command, "--delete-config", "cleanup.policy").err
    both = ("--config", "null.key=drop", "--add-config", "null.key=retain")
    assert orders.error(*command, *both) == (
        "null.key is given with both --config and --add-config (use only one of them)"
    )
    both = ("--delete-config", "null.key", "--add-config", "null.key=retain")
    assert orders.error(*command, *both).startswith("null.key is given with both --add-config and --delete-config")
    twice = orders.error(*command, "--add-config", "null.key=retain,null.key=drop")
    assert "--add-config null.key is given twice" in twice
    for wrong in ("cleanup.policy=compact,delete", "null.key", "null.key=[drop", "=drop"):
        assert "is not NAME=VALUE,NAME=[VALUE,VALUE]" in orders.error(*command, "--add-config", wrong)


@pytest.mark.usefixtures("plain_rounds")
def test_a_view_stands_between_side_by_side_and_in_place(orders):
    """C35, C43."""
    alter(orders, "compaction.mode=side-by-side")
    assert orders("topic", "uncompact", "orders").err == "orders: there is no compacted view, still version 3\n"
    orders("compact", "orders")
    assert orders.error("topic", "alter", "orders", "--unset", "compaction.mode") == (
        "orders: partition 0 has a compacted view, which in-place topics do not have "
        "(drop it first: `lithify topic uncompact orders --yes`)"
    )
    assert orders.error("topic", "uncompact", "orders") == (
        "orders: nothing was dropped (--yes drops the compacted view of 1 log with 1 record; the backlog remains)"
    )
    dropped = orders("topic", "uncompact", "orders", "--yes")
    assert dropped.out == "PARTITION  CLEAN BELOW  VIEW RECORDS\n        0        2 → 0            -1\n"
    assert dropped.err == "orders: the compacted view was dropped, version 5\n"
    orders("topic", "alter", "orders", "--unset", "compaction.mode")
    assert orders.error("topic", "uncompact", "orders", "--yes") == (
        "orders: an in-place topic has no compacted view to drop (its compacted log is its only log; nothing "
        "was changed)"
    )
    assert len(orders("consume", "orders").lines) == 2


@pytest.mark.usefixtures("plain_rounds")
def test_a_view_of_records_that_the_backlog_has_not_is_dropped_only_on_request(lithify):
    """C35: it says how many."""
    settings = ("compaction.mode=side-by-side", "cleanup.policy=compact,delete", "retention.bytes=0")
    lithify("topic", "create", "orders", *(part for setting in settings for part in ("--config", setting)))
    produce(lithify, "orders", "a\t1", "b\t1")
    lithify("compact", "orders")
    lithify("retain", "orders")
    for yes in ((), ("--yes",)):
        assert lithify.error("topic", "uncompact", "orders", *yes) == (
            "orders-0: 2 records of the compacted view below the log start 2 of the backlog, which was trimmed, "
            "would be lost (add --lose-trimmed to drop the compacted view with them)"
        )
    assert len(lithify("consume", "orders", "--compacted").lines) == 2
    dropped = lithify("topic", "uncompact", "orders", "--lose-trimmed", "--yes", "--json").json
    assert (dropped["verb"], dropped["logs"][0]["records_removed"]) == ("uncompact", 2)
    assert lithify("consume", "orders", "--compacted").out == ""
