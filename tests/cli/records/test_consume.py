"""`lithify consume` and `lithify table`."""

from __future__ import annotations

import json

import pytest

import lithify as package
from lithify.model.message import Envelope, MessageId


@pytest.fixture
def orders(lithify):
    """Two logs: 10 to 12, then a gap, 20 to 22 in the first; 0 to 2 in the second."""
    lithify("topic", "create", "orders", "--partitions", 2)
    places = [(0, n) for n in (10, 11, 12)] + [(1, n) for n in range(3)] + [(0, n) for n in (20, 21, 22)]
    lines = (
        json.dumps({"partition": p, "offset": o, "timestamp": 1000 * o, "key": f"k{o % 2}", "value": f"v{o}"})
        for p, o in places
    )
    lithify("produce", "orders", "--keep-offsets", stdin="\n".join(lines))
    return lithify


def places(outcome):
    return [(r["partition"], r["offset"]) for r in outcome.lines]


FIRST = [(0, n) for n in (10, 11, 12, 20, 21, 22)]
SECOND = [(1, n) for n in range(3)]


def test_every_record_a_partition_at_a_time(orders):
    done = orders("consume", "orders")
    assert places(done) == FIRST + SECOND
    assert done.err == ""
    assert done.out.splitlines()[0] == (
        '{"partition":0,"offset":10,"timestamp":10000,"key":"k0","value":"v10","headers":[]}'
    )
    assert orders("consume", "orders", "--json").out == done.out
    assert orders("consume", "orders", "--compacted").out == done.out


@pytest.mark.parametrize(
    ("start", "left"), [("earliest", 6), ("latest", 0), ("0", 6), ("12", 4), ("13", 3), ("22", 1), ("23", 0)]
)
def test_where_to_start(orders, start, left):
    assert places(orders("consume", "orders", "--partition", 0, "--from", start)) == FIRST[6 - left :]


def test_from_a_time(orders):
    assert places(orders("consume", "orders", "--from", "@11500")) == FIRST[2:]
    assert places(orders("consume", "orders", "--from", "1970-01-01T00:00:02")) == FIRST + SECOND[2:]


def test_more_than_any_log_has_is_refused(orders):
    assert "not in the range" in orders("consume", "orders", "--max", 2**63, code=2).err
    assert len(orders("consume", "orders", "--max", 2**63 - 1).lines) == len(orders("consume", "orders").lines)


def test_at_most_so_many(orders):
    for most in (0, 1, 4, 8, 9, 10):
        assert places(orders("consume", "orders", "--max", most)) == (FIRST + SECOND)[:most]


def test_one_log_needs_no_partition(lithify):
    lithify("topic", "create", "t")
    lithify("produce", "t", stdin='{"key":"a","value":"1"}\n{"key":"b","value":"2"}\n')
    assert places(lithify("consume", "t", "--from", 1)) == [(0, 1)]


def test_refused_positions_say_where_one_may_start(orders):
    consume = ("consume", "orders")
    assert orders.error(*consume, "--from", 5) == "offset 5 belongs to one log (pass a partition)"
    assert orders.error(*consume, "--partition", 0, "--from", 24).startswith(
        "orders-0: offset 24 is outside of [0, 23]"
    )
    assert orders.error(*consume, "--partition", 0, "--from", -1).startswith("orders-0: offset -1 is outside of")
    assert orders.error(*consume, "--partition", 2).startswith("orders has no partition 2")
    assert "is not a time: use ISO 8601" in orders.error(*consume, "--from", "yesterday")
    assert orders.error("consume", "nope").startswith("nope: no such topic")


def test_a_partition_in_the_topics_name(lithify):
    name = "persistent://public/default/orders"
    lithify("topic", "create", name, "--partitions", 2)
    lithify("produce", name, stdin='{"key":"a","value":"1","partition":0}\n{"key":"b","value":"2","partition":1}\n')
    assert places(lithify("consume", f"{name}-partition-1")) == [(1, 0)]
    assert places(lithify("consume", f"{name}-partition-1", "--partition", 1)) == [(1, 0)]
    assert "is partition 1, but --partition is 0" in lithify.error("consume", f"{name}-partition-1", "--partition", 0)


def test_what_is_not_text_fails_with_the_way_out(lithify):
    lithify("topic", "create", "t")
    good, bad = '{"key":"aw==","value":"dg=="}', '{"key":"/w==","value":null}'
    lithify("produce", "t", "--encoding", "base64", stdin="\n".join([good, good, bad, good]))
    failed = lithify("consume", "t", code=1)
    assert places(failed) == [(0, 0), (0, 1)]
    assert failed.err == "error[Lithify]: t-0: the record at offset 2 is not UTF-8 text (use --encoding base64)\n"
    assert len(lithify("consume", "t", "--encoding", "base64").lines) == 4
    lithify("produce", "t", "--encoding", "base64", stdin='{"key":"/w==","value":""}')
    assert lithify("table", "t", code=1).err == failed.err.replace("offset 2", "offset 4")


def test_the_table_has_the_latest_of_every_live_key(orders):
    orders("produce", "orders", stdin='{"key":"k0","value":null,"partition":1}\n')
    done = orders("table", "orders")
    found = {(r["partition"], r["key"]): r["value"] for r in done.lines}
    assert found == {(0, "k0"): "v22", (0, "k1"): "v21", (1, "k1"): "v1"}
    assert len(done.lines) == 3
    assert orders("table", "orders", "--json").out == done.out


def test_the_table_of_a_partition(orders):
    values = [[r["value"] for r in orders("table", "orders", "--partition", p).lines] for p in (0, 1)]
    assert values == [["v21", "v22"], ["v1", "v2"]]
    assert "orders has no partition 7" in orders.error("table", "orders", "--partition", "7")


def test_the_table_of_a_partition_that_the_name_has(lithify):
    name = "persistent://public/default/orders"
    lithify("topic", "create", name, "--partitions", "2")
    lithify("produce", name, stdin='{"key":"k","value":"0","partition":0}\n{"key":"k","value":"1","partition":1}\n')
    assert [r["value"] for r in lithify("table", f"{name}-partition-1").lines] == ["1"]
    assert "but --partition is 0" in lithify.error("table", f"{name}-partition-1", "--partition", "0")


def test_a_key_is_looked_up(orders):
    """C13: in every partition, or in the one that is named."""
    orders("produce", "orders", stdin='{"key":"k2","value":null,"partition":0}\n')
    found = orders("table", "orders", "--key", "k1")
    assert [(r["partition"], r["value"]) for r in found.lines] == [(0, "v21"), (1, "v1")]
    assert found.err == ""
    assert orders("table", "orders", "--key", "6b31", "--key-encoding", "hex").lines == [
        {**line, "key": "6b31"} for line in found.lines
    ]
    assert [r["value"] for r in orders("table", "orders", "--key", "k1", "--partition", 1).lines] == ["v1"]
    for gone in ("k2", "never", ""):
        missed = orders("table", "orders", "--key", gone)
        assert (missed.out, missed.err) == ("", "orders: there is no live record of that key\n")
    assert "--key" in orders.error("table", "orders", "--key", "not hex", "--key-encoding", "hex")


def test_a_key_is_looked_up_in_earlier_states(orders):
    orders("produce", "orders", stdin='{"key":"k1","value":"later","partition":1}\n')
    assert [r["value"] for r in orders("table", "orders", "--key", "k1", "--partition", 1).lines] == ["later"]
    before = orders("table", "orders", "--key", "k1", "--partition", 1, "--at", 2)
    assert [r["value"] for r in before.lines] == ["v1"]
    missed = orders("table", "orders", "--key", "k1", "--partition", 1, "--at", 0)
    assert (missed.out, missed.err) == ("", "orders: there was no live record of that key at that point\n")


def test_message_ids_of_a_copied_topic_are_shown_and_are_places_to_start(lithify):
    """C52: as `consume` prints them; `produce` has none to give."""
    name = "persistent://shop/eu/orders"
    topic = package.open(str(lithify.warehouse)).create_topic(name, like="pulsar", config={"message.ids": "pulsar"})
    envelopes = (
        Envelope(MessageId(1042, 17)),
        Envelope(MessageId(1042, 18, 0), 5),
        Envelope(MessageId(1042, 18, 1), None, b"", True),
    )
    keys = (b"a", b"b", None)
    topic.append([package.Record(k, b"v", 7, (), 0, envelope=e) for k, e in zip(keys, envelopes, strict=True)])
    first, second, third = lithify("consume", name).lines
    assert (first["message_id"], first["publish_time"], first["event_time"]) == ("1042:17", 7, None)
    assert (second["message_id"], second["event_time"], "passed_through" in second) == ("1042:18:0", 5, False)
    assert (third["message_id"], third["passed_through"], third["key"]) == ("1042:18:1", True, None)
    for printed in ("1042:18:0:1", "(1042,18,-1,1)"):  # by Pulsar's clients
        assert "write 1042:18:1, and the partition as" in lithify.error("consume", "t", "--from", printed)
    assert lithify("consume", name, "--from", "1042:18").lines == [second, third]
    assert "was not copied yet: the last copied one is 1042:18:1" in lithify.error("consume", name, "--from", "1043:0")
    assert "produced records have no message ids" in lithify.error("produce", name, stdin='{"key":"k","value":"v"}')


def test_the_records_of_one_key_are_those_of_all_partitions(lithify):
    lithify("topic", "create", "mixed", "--partitions", 2, "--config", "null.key=retain")
    records = [(0, "k", "1"), (0, "kk", "2"), (1, "k", "3"), (1, None, "4"), (0, "", "5"), (0, "k", None)]
    lines = [{"partition": partition, "key": key, "value": value} for partition, key, value in records]
    lithify("produce", "mixed", stdin="".join(json.dumps(line) + "\n" for line in lines))

    def values(*how):
        return [record["value"] for record in lithify("consume", "mixed", *how).lines]

    assert values("--key", "k") == ["1", None, "3"]
    assert values("--key", "k", "--max", 2) == ["1", None]
    assert values("--key", "k", "--partition", 1) == ["3"]
    assert values("--key", "") == ["5"]
    assert values("--key", "none") == []
    assert [(r["partition"], r["value"]) for r in lithify("table", "mixed", "--key", "k").lines] == [(1, "3")]
    refused = lithify.error("consume", "mixed", "--key", "k", "--group", "g")
    assert refused.startswith("--key cannot be combined with --group")
