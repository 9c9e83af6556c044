"""Options of the data source: Kafka's names and forms, and everything else refused by name."""

from __future__ import annotations

import pytest

from lithify.errors import LithifyError
from lithify.model.cursor import AtTime
from lithify.model.message import MessageId
from lithify.model.names import TopicName
from lithify.model.scan import AsOfPoint, AsOfVersion, Everywhere, Listed, Matching, PerLog, ScanSettings
from lithify.spark_source.options import (
    READING,
    Triggers,
    check_batch,
    check_stream,
    place,
    read_options,
    write_options,
)

T = {"subscribe": "t"}
JSON = '{"t":{"0":23,"1":-2,"2":-1}}'


def test_without_options_everything_is_as_with_kafka():
    options = read_options(T)
    assert options.subscription == Listed((TopicName("default", "t"),))
    assert (options.start, options.end, options.columns, options.as_of) == (None, None, None, None)
    assert options.triggers == Triggers(None, None, 15 * 60_000)
    assert options.settings == ScanSettings(compacted=False, fail_on_data_loss=True, min_tasks=None)
    assert not options.include_headers


def test_every_option_is_taken_in_any_case():
    """Spark hands option names on in lower case."""
    given = {
        "subscribe": "a, shop/b",
        "startingoffsets": JSON.replace('"t"', '"a"'),
        "ENDINGTIMESTAMP": "5",
        "maxOffsetsPerTrigger": "10",
        "minOffsetsPerTrigger": "4",
        "maxTriggerDelay": "90s",
        "maxRecordsPerPartition": "7",
        "startingOffsetsByTimestampStrategy": "LATEST",
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
    assert options.settings == ScanSettings(
        compacted=True, fail_on_data_loss=False, latest_without_match=True, min_tasks=3, max_task_offsets=7
    )
    assert (options.triggers, options.include_headers, options.columns) == (
        Triggers(10, 4, 90_000),
        True,
        ("key", "offset"),
    )
    assert read_options({"SUBSCRIBEPATTERN": "a.*"}).subscription == Matching("a.*")


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({"startingOffsets": "Earliest"}, Everywhere("earliest")),
        ({"startingOffsets": "latest", "startingOffsetsByTimestamp": '{"t":{"0":9}}'}, PerLog({"t": {0: AtTime(9)}})),
        ({"startingTimestamp": "7", "startingOffsetsByTimestamp": JSON}, Everywhere(AtTime(7))),
        ({"startingTimestamp": "-1"}, Everywhere("latest")),
        ({"startingOffsetsByTimestamp": JSON}, PerLog({"t": {0: AtTime(23), 1: "earliest", 2: "latest"}})),
        (
            {"startingOffsets": '{"t":{"0":"5:1","1":"5:1:2","2":7}}'},
            PerLog({"t": {0: MessageId(5, 1), 1: MessageId(5, 1, 2), 2: 7}}),
        ),
    ],
)
def test_a_time_for_all_comes_before_times_and_times_before_offsets(given, start):
    assert read_options({**T, **given}).start == start


def test_partitions_may_be_assigned():
    options = read_options({"assign": '{"a":[0,2],"shop/b":[1]}'})
    assert options.subscription == Listed((TopicName("default", "a"), TopicName("shop", "b")))
    assert options.settings.assigned == {"a": {0, 2}, "shop/b": {1}}


@pytest.mark.parametrize(
    ("given", "as_of"),
    [
        ({"versionAsOf": "3"}, AsOfVersion(3)),
        ({"timestampAsOf": "1700000000000"}, AsOfPoint(AtTime(1_700_000_000_000))),
        ({"TIMESTAMPASOF": "2026-01-31 12:00:00+09:00"}, AsOfPoint(AtTime(1_769_828_400_000))),
        ({"at": "2026-01-31T03:00:00Z"}, AsOfPoint(AtTime(1_769_828_400_000))),
        ({"at": "@5"}, AsOfPoint(AtTime(5))),
        ({"at": "17"}, AsOfPoint(17)),
        ({"at": '{"t":{"0":3,"1":4}}'}, AsOfPoint({"t": {0: 3, 1: 4}})),
    ],
)
def test_a_point_in_the_past(given, as_of):
    assert read_options({**T, **given}).as_of == as_of


def test_what_only_clients_of_a_broker_need_is_ignored():
    given = {"groupIdPrefix": "g", "kafkaConsumer.pollTimeoutMs": "9", "fetchOffset.numRetries": "1"}
    assert read_options({**T, **given}) == read_options(T)


REFUSED = [
    ({}, "give one of subscribe .* subscribePattern, assign, or the topic in load"),
    ({**T, "subscribePattern": "o.*"}, "give one of subscribe"),
    ({**T, "path": "x"}, "give one of subscribe"),
    ({"subscribePattern": "("}, r"subscribePattern=\( is not a regular expression"),
    ({"subscribe": "a,,b"}, "not a topic"),
    ({**T, "startingOffset": "1"}, r"unknown option 'startingOffset' \(did you mean startingOffsets\?\)"),
    ({**T, "includeheader": "true"}, r"unknown option 'includeheader' \(did you mean includeHeaders\?\)"),
    ({**T, "maxoffsetpertriggers": "1"}, r"\(did you mean maxOffsetsPerTrigger\?\)"),
    ({**T, "acks": "1"}, r"unknown option 'acks' \(use one of: warehouse, catalog, "),
    ({**T, "topic": "x"}, "unknown option 'topic'"),
    ({**T, "kafka.bootstrap.servers": "b"}, "kafka.bootstrap.servers.*records come from the warehouse"),
    ({**T, "startingOffsets": "soon"}, "startingOffsets=soon is neither earliest, latest"),
    ({**T, "startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets=.*-1 for the latest"),
    ({**T, "startingOffsets": '{"t":{"0":true}}'}, "startingOffsets="),
    ({**T, "startingOffsets": '{"t":[1]}'}, "startingOffsets="),
    ({**T, "startingOffsets": "5:1"}, "startingOffsets=5:1 .* a message id"),
    ({**T, "startingOffsets": '{"t":{"0":"5:"}}'}, "startingOffsets=.* a message id"),
    ({**T, "startingOffsets": '{"t":{"0":[5,1]}}'}, "startingOffsets="),
    ({**T, "startingOffsetsByTimestamp": '{"t":{"0":"5:1"}}'}, "startingOffsetsByTimestamp="),
    ({**T, "endingOffsets": "[]"}, "endingOffsets="),
    ({**T, "startingTimestamp": "yesterday"}, "startingTimestamp=yesterday: give a whole number"),
    ({**T, "minPartitions": "0"}, "minPartitions=0: give a number greater than 0"),
    ({**T, "maxOffsetsPerTrigger": "-5"}, "maxOffsetsPerTrigger=-5"),
    ({**T, "maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, "minOffsetsPerTrigger=6 is greater than .*=5"),
    ({**T, "maxTriggerDelay": "soon"}, "maxTriggerDelay: 'soon' is not a duration"),
    ({**T, "maxTriggerDelay": "-1s"}, "maxTriggerDelay=-1s: give a time"),
    ({**T, "maxRecordsPerPartition": "0"}, "maxRecordsPerPartition=0: give a number greater than 0"),
    ({**T, "startingOffsetsByTimestampStrategy": "earliest"}, "Strategy=earliest: give error or latest"),
    ({**T, "startingTimestamp": "-3"}, "startingTimestamp=-3: give a whole number"),
    ({**T, "startingOffsetsByTimestamp": '{"t":{"0":-3}}'}, "startingOffsetsByTimestamp="),
    ({"assign": "t"}, r"assign=t .*write \{\"topic\":\[0,1\]\}"),
    ({"assign": '{"t":[]}'}, "assign="),
    ({"assign": '{"t":[-1]}'}, "assign="),
    ({**T, "assign": '{"t":[0]}'}, "give one of subscribe"),
    ({**T, "versionAsOf": "-1"}, "versionAsOf=-1: give a whole number"),
    ({**T, "versionAsOf": "1", "at": "2"}, "versionAsOf and at cannot be combined.*remove one of them"),
    ({**T, "at": "1", "endingOffsets": "latest"}, "at and endingOffsets cannot be combined"),
    ({**T, "timestampAsOf": "1", "startingTimestamp": "1"}, "timestampAsOf and startingTimestamp cannot be combined"),
    ({**T, "timestampAsOf": "2026-01-31 12:00:00"}, "has no time zone.*such as Z"),
    ({**T, "timestampAsOf": "2026-01-31"}, "has no time zone"),
    ({**T, "at": "yesterday"}, "at=yesterday: 'yesterday' is not a time"),
    ({**T, "at": '{"t":{"0":-1}}'}, "at="),
    ({**T, "includeHeaders": "yes"}, "includeHeaders=yes: give true or false"),
]


OF_LOGS = ("assign", "startingOffsets", "endingOffsets", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "at")


@pytest.mark.parametrize("name", OF_LOGS)
@pytest.mark.parametrize("other", ["t", "default/t"])
def test_a_topic_that_is_named_twice_is_refused(name, other):
    """One of the two would be ignored: other records would be read, without an error."""
    one, two = ("[0]", "[1]") if name == "assign" else ('{"0":5}', '{"1":9}')
    with pytest.raises(LithifyError, match=f"{name} has t twice"):
        read_options({**({} if name == "assign" else T), name: f'{{"t":{one},"{other}":{two}}}'})


@pytest.mark.parametrize("name", OF_LOGS[1:])
def test_a_partition_is_named_once_and_in_one_way(name):
    with pytest.raises(LithifyError, match=f"{name} has 0 twice"):
        read_options({**T, name: '{"t":{"0":5,"0":9}}'})
    for other in ("00", "1_0", "٣", " 1", "-1", "1.0", ""):
        with pytest.raises(LithifyError, match=f"{name}="):
            read_options({**T, name: f'{{"t":{{"{other}":9}}}}'})


@pytest.mark.parametrize("name", OF_LOGS)
@pytest.mark.parametrize("nested", ["[", '{"a":', '{"t":['])
def test_json_that_is_deeper_than_any_stack_is_refused(name, nested):
    with pytest.raises(LithifyError, match=f"{name}="):
        read_options({**({} if name == "assign" else T), name: nested * 100_000})


OF_BATCHES = [
    ({"startingOffsets": "latest"}, "startingOffsets=latest: nothing would be read"),
    ({"endingOffsets": "earliest"}, "endingOffsets=earliest: nothing would be read"),
    ({"startingOffsets": JSON}, "startingOffsets: -1 is the latest, .* partition 2 of t"),
    ({"endingOffsets": JSON}, "endingOffsets: -2 is the earliest, .* partition 1 of t"),
    ({"group": "g"}, "a batch query does not report progress"),
]


def test_what_a_batch_query_cannot_have_is_refused_as_by_kafkas_source():
    for given, says in OF_BATCHES:
        with pytest.raises(LithifyError, match=says):
            check_batch(read_options({**T, **given}))
    for taken in ({"startingOffsetsByTimestamp": JSON}, {"startingTimestamp": "-1"}, {"endingTimestamp": "-2"}):
        check_batch(read_options({**T, **taken}))


def test_what_a_stream_cannot_have_is_refused():
    for given, says in (
        ({"endingTimestamp": "5"}, "endingTimestamp: a stream has no end"),
        ({"at": "5"}, "past state"),
    ):
        with pytest.raises(LithifyError, match=says):
            check_stream(read_options({**T, **given}))


@pytest.mark.parametrize(("given", "says"), REFUSED)
def test_what_cannot_be_is_refused(given, says):
    with pytest.raises(LithifyError, match=says):
        read_options(given)


def test_the_topic_may_be_what_is_loaded():
    assert read_options({"path": "shop/b"}).subscription == Listed((TopicName("shop", "b"),))


def test_a_partition_is_not_a_topic():
    with pytest.raises(LithifyError, match="is a partition"):
        read_options({"subscribe": "persistent://a/b/c-partition-1"})


def test_where_to_write():
    assert write_options({}).topic is None
    assert write_options({"Topic": "shop/b"}).topic == TopicName("shop", "b")
    assert write_options({"path": "shop/b"}).topic == TopicName("shop", "b")
    assert write_options({"queryid": "q", "batchid": "3"}).batch == ("q", 3)
    for given, says in (
        ({"batchId": "3"}, "give both queryId and batchId"),
        ({"subscribe": "t"}, "unknown option 'subscribe'"),
        ({"batchid": "1", "queryid": "q", "topics": "t"}, r"unknown option 'topics' \(did you mean topic\?\)"),
        ({"topic": "a", "path": "b"}, "two topics are given, b and a"),
        ({"batchid": "1", "queryid": "lithify-appends"}, "reserved for appends with idempotency keys"),
    ):
        with pytest.raises(LithifyError, match=says):
            write_options(given)


def test_one_place_at_most():
    assert place({}) == (None, None)
    assert place({"WAREHOUSE": "w"}) == ("w", None)
    with pytest.raises(LithifyError, match="give warehouse or catalog"):
        place({"warehouse": "w", "catalog": "c"})


def test_every_option_is_in_the_guide():
    from pathlib import Path

    page = (Path(__file__).parents[3] / "docs" / "data-in" / "spark.md").read_text("utf-8")
    assert [name for name in READING if f"`{name}`" not in page] == []


@pytest.mark.parametrize("more", [{}, {"subscribe": "t", "option.subscribe": "t"}, {"path": "/t", "location": "/t"}])
def test_a_table_of_sparks_catalog_is_refused_by_what_spark_hands_over_of_it(more):
    with pytest.raises(LithifyError, match="a table of Spark's catalog") as refused:
        read_options({"owner": "root", **more, "provider": "lithify"})
    assert "CREATE TEMPORARY VIEW" in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["location", "comment", "owner"])
def test_an_option_is_no_table_of_sparks_catalog(name):
    with pytest.raises(LithifyError, match=f"unknown option '{name}'"):
        read_options({"subscribe": "t", name: "x"})
