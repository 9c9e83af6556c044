"""Names of topics: ours, Pulsar's and MapR's; no two of them the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import InvalidNameError
from lithify.model.names import MAX_NAME_LENGTH, LogId, TopicName, nearest, original_name, parse_topic


@pytest.mark.parametrize(
    ("text", "stream", "topic", "shown"),
    [
        ("orders", "default", "orders", "orders"),
        ("default/orders", "default", "orders", "orders"),
        ("shop/orders", "shop", "orders", "shop/orders"),
        ("a.b_c-d/o.r_d-1", "a.b_c-d", "o.r_d-1", "a.b_c-d/o.r_d-1"),
        ("orders-partition-3", "default", "orders-partition-3", "orders-partition-3"),
        ("persistent://acme/shop/orders", "pulsar.acme.shop", "orders", "persistent://acme/shop/orders"),
        ("persistent://a.b/c/d.e", "pulsar.a%2Eb.c", "d%2Ee", "persistent://a.b/c/d.e"),
        ("persistent://a/b/c/d", "pulsar.a.b", "c%2Fd", "persistent://a/b/c/d"),
        ("persistent://a/b/ü ~", "pulsar.a.b", "%C3%BC%20%7E", "persistent://a/b/ü ~"),
        ("/apps/s:orders", "mapr.%2Fapps%2Fs", "orders", "/apps/s:orders"),
        ("/apps:x/s:orders", "mapr.%2Fapps%3Ax%2Fs", "orders", "/apps:x/s:orders"),
    ],
)
def test_a_name_is_stored_under_a_stream(text, stream, topic, shown):
    reference = parse_topic(text)
    assert reference.name == TopicName(stream, topic)
    assert str(reference.name) == shown
    assert parse_topic(shown).name == parse_topic(reference.name.stored).name == reference.name
    assert (reference.original, reference.partition) == (text, None)


def test_a_partition_of_pulsar_is_a_partition_of_the_topic():
    reference = parse_topic("persistent://a/b/c-partition-12")
    assert (reference.name, reference.partition) == (parse_topic("persistent://a/b/c").name, 12)
    assert reference.original == "persistent://a/b/c"


NO_NUMBERS = ("", "01", "x", "-1", "١", "1000000000")


@pytest.mark.parametrize("suffix", [f"-partition-{number}" for number in NO_NUMBERS])
def test_what_only_looks_like_a_partition_is_part_of_the_name(suffix):
    reference = parse_topic(f"persistent://a/b/c{suffix}")
    assert (reference.partition, reference.original) == (None, f"persistent://a/b/c{suffix}")


def test_a_number_of_a_partition_without_end_is_refused():
    with pytest.raises(InvalidNameError):
        parse_topic(f"persistent://a/b/c-partition-{'1' * 5000}")


def test_a_topic_that_is_not_stored_is_refused():
    with pytest.raises(InvalidNameError, match="stores nothing"):
        parse_topic("non-persistent://a/b/c")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        "a/b/c",
        ".",
        "..",
        "../x",
        "a..b/c",
        ".a/b",
        "a./b",
        "a b",
        "ü",
        "a\nb",
        "kafka://a/b/c",
        "persistent://a/b",
        "persistent://a//c",
        "persistent:///b/c",
        "/path:",
        "/:x",
        "x" * (MAX_NAME_LENGTH + 1),
        "persistent://a/b/" + "ü" * 84,
        "bad-bytes-\udcff",
    ],
)
def test_what_is_no_name_is_refused_with_what_is_accepted(text):
    with pytest.raises(InvalidNameError, match="not a topic") as error:
        parse_topic(text)
    assert "\n" not in str(error.value)
    str(error.value).encode()  # can be printed


def test_a_name_may_have_the_length_that_kafka_allows():
    assert parse_topic("x" * MAX_NAME_LENGTH).name.topic == "x" * MAX_NAME_LENGTH


PARTS = st.text(st.characters(exclude_characters="/\n", exclude_categories=["Cs"]), min_size=1, max_size=12)
PULSAR = st.tuples(PARTS, PARTS, PARTS).map(lambda parts: "persistent://" + "/".join(parts))
MAPR = st.tuples(PARTS, PARTS.filter(lambda part: ":" not in part)).map(lambda parts: f"/{parts[0]}:{parts[1]}")
FOREIGN = st.one_of(PULSAR, MAPR)


@given(FOREIGN)
def test_a_foreign_name_follows_from_where_it_is_stored(text):
    reference = parse_topic(text)
    assert original_name(reference.name) == reference.original
    assert parse_topic(str(reference.name)).name == reference.name


@given(FOREIGN, FOREIGN)
def test_no_two_foreign_names_are_stored_as_the_same(one, other):
    first, second = parse_topic(one), parse_topic(other)
    same = (first.name, first.partition) == (second.name, second.partition)
    assert same == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "shop/orders",
        "pulsar/1",
        "pulsar.a/x",
        "pulsar.a.b.c/x",
        "mapr/x",
        "mapr.foo/x",
        "pulsar.a.b/c-partition-1",
    ],
)
def test_a_name_of_ours_that_only_begins_like_a_foreign_one_stays_as_it_is(text):
    assert original_name(parse_topic(text).name) == text


def test_a_log_prints_as_kafka_prints_it():
    """C13. A partition of a topic of Pulsar as Pulsar does: every verb that takes a partition takes that name."""
    assert str(LogId(TopicName("shop", "orders"), 3)) == "shop/orders-3"
    log = LogId(TopicName("pulsar.a.b", "c-1"), 3)
    assert str(log) == "persistent://a/b/c-1-partition-3"
    assert (parse_topic(str(log)).name, parse_topic(str(log)).partition) == (log.topic, log.partition)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("order", "orders", "did you mean orders?"),
        ("ORDERS", "orders", "did you mean orders?"),
        ("orders", "clicks", "otherwise"),
        ("persistent://shop/eu/ordres", "persistent://shop/eu/orders", "did you mean persistent://shop/eu/orders?"),
        ("persistent://shop/us/orders", "persistent://shop/eu/orders", "did you mean persistent://shop/eu/orders?"),
        ("persistent://shop/eu/clicks", "persistent://shop/eu/orders", "otherwise"),
        ("/shop/stream:clicks", "/shop/stream:orders", "otherwise"),
    ],
)
def test_the_nearest_name_is_not_one_that_is_merely_in_the_same_place(name, known, hint):
    assert nearest(name, [known], "otherwise") == hint
