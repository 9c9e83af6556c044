"""Options of the data source: Kafka's names and forms, and everything else refused by name."""

from __future__ import annotations

import pytest

from lithify.errors import LithifyError
from lithify.model.cursor import AtTime
from lithify.model.message import MessageId
from lithify.model.names import TopicName
from lithify.model.scan import Everywhere, Listed, Matching, PerLog, ScanSettings
from lithify.spark_source.options import READING, place, read_options, write_options

T = {"subscribe": "t"}
JSON = '{"t":{"0":23,"1":-2,"2":-1}}'


def test_without_options_everything_is_as_with_kafka():
    options = read_options(T)
    assert options.subscription == Listed((TopicName("default", "t"),))
    assert (options.start, options.end, options.columns, options.offsets_per_trigger) == (None, None, None, None)
    assert options.settings == ScanSettings(compacted=False, fail_on_data_loss=True, min_tasks=None)
    assert not options.include_headers


def test_every_option_is_taken_in_any_case():
    """Spark hands option names on in lower case."""
    given = {
        "subscribe": "a, shop/b",
        "startingoffsets": JSON.replace('"t"', '"a"'),
        "ENDINGTIMESTAMP": "5",
        "maxOffsetsPerTrigger": "10",
        "minPartitions": "3",
        "includeHeaders": "TRUE",
        "failOnDataLoss": "false",
        "compacted": "true",
        "columns": "key, offset",
        "checkpointLocation": "anywhere",
    }
    options = read_options(given)
    assert options.subscription == Listed((TopicName("default", "a"), TopicName("shop", "b")))
    assert options.start == PerLog({"a": {0: 23, 1: "earliest", 2: "latest"}})
    assert options.end == Everywhere(AtTime(5))
    assert options.settings == ScanSettings(compacted=True, fail_on_data_loss=False, min_tasks=3)
    assert (options.offsets_per_trigger, options.include_headers, options.columns) == (10, True, ("key", "offset"))
    assert read_options({"SUBSCRIBEPATTERN": "a.*"}).subscription == Matching("a.*")


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({"startingOffsets": "Earliest"}, Everywhere("earliest")),
        ({"startingOffsets": "latest", "startingOffsetsByTimestamp": '{"t":{"0":9}}'}, PerLog({"t": {0: AtTime(9)}})),
        ({"startingTimestamp": "7", "startingOffsetsByTimestamp": JSON}, Everywhere(AtTime(7))),
        (
            {"startingOffsets": '{"t":{"0":"5:1","1":"5:1:2","2":7}}'},
            PerLog({"t": {0: MessageId(5, 1), 1: MessageId(5, 1, 2), 2: 7}}),
        ),
    ],
)
def test_a_time_for_all_comes_before_times_and_times_before_offsets(given, start):
    assert read_options({**T, **given}).start == start


REFUSED = [
    ({}, "give subscribe .* subscribePattern, or the topic in load"),
    ({**T, "subscribePattern": "o.*"}, "one of the three"),
    ({**T, "path": "x"}, "one of the three"),
    ({"subscribePattern": "("}, r"subscribePattern=\(: not a regular expression"),
    ({"subscribe": "a,,b"}, "not a topic"),
    ({**T, "startingOffset": "1"}, "unknown option 'startingOffset'.*startingOffsets"),
    ({**T, "topic": "x"}, "unknown option 'topic'"),
    ({**T, "kafka.bootstrap.servers": "b"}, "kafka.bootstrap.servers.*records come from the warehouse"),
    ({**T, "startingOffsets": "soon"}, "startingOffsets=soon: neither earliest nor latest"),
    ({**T, "startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets=.*-1 the latest"),
    ({**T, "startingOffsets": '{"t":{"0":true}}'}, "startingOffsets="),
    ({**T, "startingOffsets": '{"t":[1]}'}, "startingOffsets="),
    ({**T, "startingOffsets": "5:1"}, "startingOffsets=5:1: .* a message id"),
    ({**T, "startingOffsets": '{"t":{"0":"5:"}}'}, "startingOffsets=.* a message id"),
    ({**T, "startingOffsets": '{"t":{"0":[5,1]}}'}, "startingOffsets="),
    ({**T, "startingOffsetsByTimestamp": '{"t":{"0":"5:1"}}'}, "startingOffsetsByTimestamp="),
    ({**T, "endingOffsets": "[]"}, "endingOffsets="),
    ({**T, "startingTimestamp": "yesterday"}, "startingTimestamp=yesterday: give a whole number"),
    ({**T, "minPartitions": "0"}, "minPartitions=0: give a number above 0"),
    ({**T, "maxOffsetsPerTrigger": "-5"}, "maxOffsetsPerTrigger=-5"),
    ({**T, "includeHeaders": "yes"}, "includeHeaders=yes: give true or false"),
]


@pytest.mark.parametrize(("given", "says"), REFUSED)
def test_what_cannot_be_is_refused(given, says):
    with pytest.raises(LithifyError, match=says):
        read_options(given)


def test_the_topic_may_be_what_is_loaded():
    assert read_options({"path": "shop/b"}).subscription == Listed((TopicName("shop", "b"),))


def test_a_partition_is_not_a_topic():
    with pytest.raises(LithifyError, match="names a partition"):
        read_options({"subscribe": "persistent://a/b/c-partition-1"})


def test_where_to_write():
    assert write_options({}).topic is None
    assert write_options({"Topic": "shop/b"}).topic == TopicName("shop", "b")
    assert write_options({"path": "shop/b"}).topic == TopicName("shop", "b")
    assert write_options({"queryid": "q", "batchid": "3"}).batch == ("q", 3)
    for given, says in (
        ({"batchId": "3"}, "belong together"),
        ({"subscribe": "t"}, "unknown option 'subscribe'"),
        ({"topic": "a", "path": "b"}, "the topic is named twice, b and a"),
    ):
        with pytest.raises(LithifyError, match=says):
            write_options(given)


def test_one_place_at_most():
    assert place({}) == (None, None)
    assert place({"WAREHOUSE": "w"}) == ("w", None)
    with pytest.raises(LithifyError, match="warehouse and catalog"):
        place({"warehouse": "w", "catalog": "c"})


def test_every_option_is_in_the_guide():
    from pathlib import Path

    page = (Path(__file__).parents[3] / "docs" / "how-to" / "read-with-spark.md").read_text("utf-8")
    assert [name for name in READING if f"`{name}`" not in page] == []
