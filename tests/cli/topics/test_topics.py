"""`lithify topic create|list|info|delete`."""

from __future__ import annotations

import json
from pathlib import Path

import lithify as package
from lithify.model.settings.table import SETTINGS
from lithify.model.sources.origin import KAFKA, CopyOf
from lithify.model.topic.edit import TopicEdit


def test_a_topic_is_made_listed_shown_and_deleted(lithify, masked):
    made = lithify("topic", "create", "orders", "--partitions", 3, "--config", "min.compaction.lag.ms=1h")
    assert (made.out, made.err) == ("", "orders: created with 3 partitions, min.compaction.lag.ms=3600000\n")
    lithify("topic", "create", "eu/customers")
    lithify("produce", "eu/customers", stdin='{"key":"k","value":"v"}\n')
    assert masked(lithify("topic", "list").out) == (
        "TOPIC  PARTITIONS  RECORDS  SIZE\neu/customers  1  1  SIZE\norders  3  0  SIZE\n"
    )
    gone = lithify("topic", "delete", "eu/customers", "--yes")
    assert (gone.out, gone.err) == ("", "eu/customers: deleted with 1 record\n")
    assert [topic["topic"] for topic in lithify("topic", "list", "--json").lines] == ["orders"]


def test_an_empty_warehouse_has_no_topics_and_stays_empty(lithify):
    nothing = f"no topics yet in {lithify.warehouse} (`lithify topic create` makes one)\n"
    assert lithify("topic", "list").err == nothing
    assert lithify("topic", "list", "--json").out == ""
    assert not lithify.warehouse.exists()


def test_info_shows_every_setting_and_marks_what_was_chosen(lithify, masked):
    lithify("topic", "create", "orders", "--config", "delete.retention.ms=7d", "--config", "null.key=drop")
    text = masked(lithify("topic", "info", "orders").out)
    assert text.startswith(
        "orders\n  partitions  1\n  records  0\n  size  SIZE\n  policy  compact, in-place\n"
        "  version  1\n  created  TIME\n"
    )
    assert "delete.retention.ms 604800000 = 7 d, of the topic, default 86400000" in " ".join(text.split())
    assert "    null.key  drop, of the topic, default reject\n" in text
    assert "    segment.bytes  134217728 = SIZE\n" in text
    assert [name for name in SETTINGS if f"    {name}  " not in text] == []


def test_topics_as_json(lithify):
    made = lithify("topic", "create", "orders", "--json").json
    assert lithify("topic", "info", "orders", "--json").json == made
    assert lithify("topic", "list", "--json").json == {**made, "space": None}
    assert list(made) == [
        "topic",
        "original_name",
        "table",
        "partitions",
        "version",
        "records",
        "bytes",
        "view_records",
        "view_bytes",
        "location",
        "created_ms",
        "config",
        "config_from",
        "source",
        "source_version",
        "compacts_by_itself",
        "not_compacting",
        "copy_of",
        "space",
    ]
    assert list(made["config"]) == list(made["config_from"]) == list(SETTINGS)
    deleted = lithify("topic", "delete", "orders", "--yes", "--json").json
    assert deleted == {"topic": "orders", "deleted": True, "records": 0, "left": []}


def test_a_name_of_pulsar_is_stored_apart_and_shown_as_it_was(lithify):
    name = "persistent://public/default/orders"
    lithify("topic", "create", name)
    assert lithify("topic", "list").out.splitlines()[1].startswith(f"{name} ")
    found = lithify("topic", "info", name, "--json").json
    assert (found["topic"], found["original_name"], found["table"]) == (name, name, "pulsar.public.default.orders")
    assert lithify("topic", "info", "pulsar.public.default/orders", "--json").json == found
    lithify("produce", name, stdin='{"key":"k","value":"v"}\n')
    for verb in (("status",), ("status", name), ("topic", "list"), ("compact", name, "--plan")):
        assert lithify(*verb, "--json").json["topic"] == name
    assert lithify("status", name).out.startswith(f"{name}  ")
    assert lithify.error("consume", name, "--from", "7").startswith(f"{name}-partition-0: ")


def test_deleting_needs_yes_and_says_what_would_go(lithify):
    lithify("topic", "create", "orders")
    lithify("produce", "orders", stdin='{"key":"k","value":"v"}\n')
    assert lithify.error("topic", "delete", "orders") == (
        "orders: nothing was deleted (--yes deletes the topic and its 1 record irreversibly)"
    )
    assert lithify("consume", "orders").out.count("\n") == 1


def test_deleting_leaves_files_of_others_and_tells_them(lithify):
    lithify("topic", "create", "orders")
    location = lithify("topic", "info", "orders", "--json").json["location"]
    notes = Path(location.removeprefix("file://")) / "notes.txt"
    notes.write_text("mine")
    gone = lithify("topic", "delete", "orders", "--yes")
    assert gone.out == f"{location}/notes.txt\n"
    assert gone.err.endswith("1 file in its folder does not belong to Lithify and remains:\n")
    assert notes.read_text() == "mine"


def test_refusals_say_what_would_be_taken(lithify):
    lithify("topic", "create", "orders")
    create = ("topic", "create")
    assert lithify.error(*create, "orders").startswith("orders: the topic exists already")
    assert lithify.error("topic", "info", "nope").startswith("nope: no such topic")
    assert lithify.error("topic", "delete", "nope", "--yes").startswith("nope: no such topic")
    assert lithify.error(*create, "t", "--config", "segment.byte=1") == (
        "segment.byte: no such setting (did you mean segment.bytes?)"
    )
    assert lithify.error(*create, "t", "--config", "null.key=maybe") == (
        "null.key=maybe: 'maybe' is not an accepted value (accepted: reject or drop or retain)"
    )
    contradiction = ("--config", "min.compaction.lag.ms=2h", "--config", "max.compaction.lag.ms=1h")
    assert "is above max.compaction.lag.ms=3600000" in lithify.error(*create, "t", *contradiction)
    twice = ("--config", "segment.bytes=1MiB", "--config", "segment.bytes=2MiB")
    assert lithify.error(*create, "t", *twice) == (
        "--config segment.bytes is given twice (see `lithify topic create --help`)"
    )
    assert lithify.error(*create, "t", "--config", "segment.bytes").startswith("Invalid value for '--config'")
    assert lithify.error(*create, "a b").startswith("'a b' is not a topic")
    assert lithify.error(*create, "non-persistent://a/b/c").endswith("there is nothing to compact")
    assert lithify.error(*create, "t", "--partitions", 0) == "partitions=0: a topic has 1 to 10000"
    assert lithify.error(*create, "persistent://a/b/c-partition-1").startswith(
        "persistent://a/b/c-partition-1 is a partition"
    )
    assert [topic["topic"] for topic in lithify("topic", "list", "--json").lines] == ["orders"]


def test_an_existing_topic_is_left_as_it_is_if_that_is_asked_for(lithify):
    create = ("topic", "create", "orders", "--if-not-exists")
    assert lithify(*create, "--partitions", 3).err == "orders: created with 3 partitions\n"
    made = lithify("topic", "info", "orders", "--json").json
    again = lithify(*create, "--partitions", 4, "--config", "null.key=drop")
    assert (again.out, again.err) == ("", "orders: exists already with 3 partitions; nothing was changed\n")
    assert lithify(*create, "--json").json == made
    assert "no such setting" in lithify.error(*create, "--config", "nope=1")


def test_a_topic_that_is_not_there_is_deleted_if_that_is_asked_for(lithify):
    lithify("topic", "create", "orders")
    delete = ("topic", "delete", "order", "--if-exists", "--yes")
    assert lithify(*delete).err == "order: there is no such topic; nothing was deleted\n"
    assert lithify(*delete, "--json").json == {"topic": "order", "deleted": False, "records": 0, "left": []}
    assert [topic["topic"] for topic in lithify("topic", "list", "--json").lines] == ["orders"]
    assert "nothing was deleted (--yes" in lithify.error("topic", "delete", "orders", "--if-exists")
    lithify("topic", "delete", "orders", "--if-exists", "--yes")
    assert lithify("topic", "list").out == ""


def test_an_unknown_topic_is_answered_with_the_nearest_one(lithify):
    lithify("topic", "create", "orders")
    lithify("topic", "create", "persistent://shop/eu/states")
    for verb in (("consume",), ("produce",), ("compact",), ("status",), ("topic", "info"), ("topic", "delete")):
        assert lithify.error(*verb, "order") == f"order: no such topic in {lithify.warehouse} (did you mean orders?)"
    assert lithify.error("table", "persistent://shop/eu/state").endswith("(did you mean persistent://shop/eu/states?)")
    assert lithify.error("table", "ORDERS").endswith("(did you mean orders?)")
    nope = f"nope: no such topic in {lithify.warehouse} (run `lithify topic list` to see the topics)"
    assert lithify.error("status", "nope") == nope


def test_verbs_have_the_names_of_other_nouns_and_of_kafka_as_well(lithify):
    lithify("topic", "create", "orders")
    for given, own in (("describe", "info"), ("edit", "alter"), ("add", "create"), ("remove", "delete")):
        told = lithify("topic", given, "--help").out
        assert told == lithify("topic", own, "--help").out.replace(f"lithify topic {own} [", f"lithify topic {given} [")
    assert lithify("topic", "describe", "orders", "--json").json == lithify("topic", "info", "orders", "--json").json
    assert "describe runs info, edit runs alter, add runs create" in lithify("topic", "--help").out
    assert "info runs describe" in " ".join(lithify("group", "--help").out.split())
    assert lithify.error("quarantine", "describe").startswith("No such command 'describe'")


def test_one_that_cannot_be_read_does_not_hide_the_others(lithify):
    for name in ("orders", "prices", "rates"):
        lithify("topic", "create", name)
    (metadata,) = lithify.warehouse.glob("default/prices-*/metadata/*.metadata.json")
    metadata.write_text("{")

    listed = lithify("topic", "list", code=1)

    assert [line.split()[0] for line in listed.out.splitlines()] == ["TOPIC", "orders", "rates"]
    assert listed.err.startswith("error[Damaged]: prices: the table's metadata cannot be read: Invalid JSON: EOF while")
    assert "pydantic" not in listed.err
    found = lithify("topic", "list", "--json", code=1)
    assert [line["topic"] for line in found.lines] == ["orders", "rates"]
    assert json.loads(found.err)["topic"] == "prices"


def test_a_copy_of_a_kafka_topic_refuses_records_until_it_is_promoted(lithify):
    """C70."""
    lithify("topic", "create", "orders")
    topic = package.open(str(lithify.warehouse)).topic("orders")
    topic.warehouse.store.commit(topic.state(), TopicEdit("run", 1, {}, origin=CopyOf(KAFKA, "shop.orders")))
    assert "copy of     Kafka's shop.orders" in lithify("topic", "info", "orders").out
    refused = lithify("produce", "orders", stdin='{"key":"k","value":"v"}\n', code=2).err
    assert "orders: it is a copy of Kafka's shop.orders with the offsets of Kafka" in refused
    assert "lithify kafka promote orders" in refused
    warned = lithify("kafka", "promote", "orders", code=2).err
    assert "it remains a copy of Kafka's shop.orders (--yes makes it a topic of its own" in warned
    promoted = lithify("kafka", "promote", "orders", "--yes", "--json").json
    assert (list(promoted), promoted["copy_of"]) == (["topic", "version", "copy_of", "now_ms"], "shop.orders")
    lithify("produce", "orders", stdin='{"key":"k","value":"v"}\n')
    assert lithify("topic", "info", "orders", "--json").json["copy_of"] is None
    again = lithify.error("kafka", "promote", "orders", "--yes")
    assert "it was promoted and has assigned its own offsets since then" in again
