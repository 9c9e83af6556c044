"""An ingest from whatever source: where copies go on, what ends one of them, and the rules of topics (C1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import BrokerError, EngineError, LithifyError, RefusedError, UnknownSourceError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import volume_of
from lithify.model.sources.copied_topic import CopiedTopic, Hole
from lithify.model.sources.source import IngestRequest, SourceTopic, signs_of
from lithify.rules.lifecycle.admission import MAX_PARTITIONS
from lithify.rules.lifecycle.copies.copy_continuation import (
    SourceWasCut,
    cuts_by_records,
    epochs_to_ask,
    records_to_compare,
    with_cuts,
)
from lithify.service.change.cut import truncate
from lithify.service.documents import put_source, source_of
from lithify.service.ingest.ingest import ingest
from lithify.service.ingest.narration import LOOK_MS
from lithify.service.ingest.streams import FAILURES
from lithify.service.ingest.system_outages import SILENT_MS
from support.topics.listed_source import MARKERS, ListedBatch, ListedSource, ListedStream
from support.topics.memory_topic import a_warehouse


@pytest.fixture
def warehouse():
    return a_warehouse()


def some(partition, *offsets, timestamp=1_000):
    return [Record(b"%d" % offset, b"v", timestamp, partition=partition, offset=offset) for offset in offsets]


def copied(warehouse, records, **request):
    """What an ingest of these topics tells in the end."""
    source = ListedSource(warehouse, records)
    given = IngestRequest({}, **({"topics": tuple(records)} | request))
    return ingest(warehouse, source, given, lambda _batch: None, lambda: False)


class Clustered(ListedSource):
    """In a cluster that has an id."""

    topic_id, cluster_id = "", ""

    def topic(self, name):
        return SourceTopic(name, self.topic_id, tuple(self.records[name]), self.cluster_id)


def copied_from(warehouse, topic_id, cluster_id):
    """The error of an ingest of orders."""
    source = Clustered(warehouse, {"orders": {0: some(0, 3, 4)}})
    source.topic_id, source.cluster_id = topic_id, cluster_id
    (report,) = ingest(warehouse, source, IngestRequest({}, ("orders",)), lambda _batch: None, lambda: False)
    return report.error


def state(warehouse, topic="orders"):
    return warehouse.store.load(TopicName("default", topic))


@pytest.mark.parametrize("first", ["", "id"])
@pytest.mark.parametrize("later", ["", "id"])
def test_a_topic_of_another_cluster_is_refused_unless_its_id_is_the_same(warehouse, first, later):
    assert copied_from(warehouse, first, "one") is None
    assert copied_from(warehouse, later, "") is None  # a cluster that does not tell
    assert copied_from(warehouse, later, "one") is None
    error = copied_from(warehouse, later, "other")
    known = source_of(warehouse.store, state(warehouse))
    if later == "id":  # of the first one it is stored by now
        assert (error, known.topic_id, known.cluster_id) == (None, "id", "other")
    else:
        assert "orders: it is a copy of orders in the cluster one, and this one is in the cluster other" in error
        assert known.cluster_id == "one"


def test_a_topic_with_another_id_in_another_cluster_is_refused_for_the_cluster(warehouse):
    assert copied_from(warehouse, "id", "one") is None
    assert "deleted and recreated" in copied_from(warehouse, "other id", "one")
    assert "in the cluster other" in copied_from(warehouse, "other id", "other")


def test_a_copy_has_the_offsets_of_its_source_and_goes_on_where_it_ends(warehouse):
    (report,) = copied(warehouse, {"orders": {0: some(0, 3, 4), 1: some(1, 7)}})
    assert (report.error, report.records, report.batches) == (None, 3, 1)
    assert [log.log_end_offset for log in state(warehouse).logs] == [5 + MARKERS, 8 + MARKERS]
    assert source_of(warehouse.store, state(warehouse)).topic_id == "id of orders"

    (report,) = copied(warehouse, {"orders": {0: some(0, 3, 4, 9), 1: some(1, 7)}})
    assert (report.error, report.records) == (None, 1)
    (report,) = copied(warehouse, {"orders": {0: some(0, 3, 4, 9), 1: some(1, 7)}})
    assert (report.error, report.batches) == (None, 0)
    assert volume_of(warehouse.store.segments(state(warehouse))).records == 4


def test_a_copy_has_no_records_of_a_partition_that_its_source_has_no_more(warehouse):
    """A source that was restored to when it had fewer: what the copy has of the others is of nothing that is there."""
    copied(warehouse, {"orders": {0: some(0, 1), 1: []}})
    (report,) = copied(warehouse, {"orders": {0: some(0, 1, 2)}})
    assert report.error is None  # it has nothing of the other one
    copied(warehouse, {"orders": {0: some(0, 1, 2), 1: some(1, 1)}})
    before = state(warehouse)
    (report,) = copied(warehouse, {"orders": {0: some(0, 1, 2, 9)}})
    assert report.error_code == "SourceWentBack"
    assert "orders-1: Listed's orders has 1 partition now, but the copy has records of this one" in report.error
    assert state(warehouse) == before


@pytest.mark.parametrize("into", ["persistent://t/n/orders", "/path/stream:orders", "shop/orders", "orders"])
def test_a_copy_is_called_as_its_own_system_calls_it(warehouse, into):
    copied(warehouse, {"orders": {0: some(0, 1)}}, into=into)
    (name,) = warehouse.store.topics()
    assert warehouse.store.load(name).original_name == into


def test_no_copy_has_more_partitions_than_a_topic_may_have(warehouse):
    wide = {partition: [] for partition in range(MAX_PARTITIONS + 1)}
    wide_report, other = copied(warehouse, {"wide": wide, "other": {0: some(0, 1)}})
    assert f"a topic has 1 to {MAX_PARTITIONS}" in wide_report.error
    assert (wide_report.refused, other.refused) == (True, False)
    assert (other.error, other.records) == (None, 1)
    assert warehouse.store.topics() == (TopicName("default", "other"),)


def test_no_copy_grows_beyond_it(warehouse):
    copied(warehouse, {"orders": {0: some(0, 1)}})
    (report,) = copied(warehouse, {"orders": {p: [] for p in range(MAX_PARTITIONS + 1)}})
    assert f"a topic has 1 to {MAX_PARTITIONS}" in report.error
    assert len(state(warehouse).logs) == 1


def test_what_the_source_deleted_before_it_was_copied_is_reported_or_remembered(warehouse):
    copied(warehouse, {"orders": {0: some(0, 1)}})
    later = {"orders": {0: some(0, 50)}}
    (report,) = copied(warehouse, later)
    assert f"Listed's orders starts at 50, but the copy ends at {2 + MARKERS}" in report.error
    assert not report.refused  # it may be what the source did, not what was asked
    (report,) = copied(warehouse, later, accepts_loss=True)
    assert (report.error, report.holes) == (None, (Hole(0, 2 + MARKERS, 50),))
    assert source_of(warehouse.store, state(warehouse)).holes == report.holes


def test_a_source_that_went_back_is_reported(warehouse):
    copied(warehouse, {"orders": {0: some(0, 5)}})
    (report,) = copied(warehouse, {"orders": {0: some(0, 1)}})
    assert "below the" in report.error


def test_a_pattern_that_no_topic_matches(warehouse):
    with pytest.raises(UnknownSourceError, match="a list has no topic that matches x"):
        copied(warehouse, {"orders": {0: []}}, topics=(), pattern="x.*")


def test_a_partition_is_no_place_for_a_copy(warehouse):
    with pytest.raises(RefusedError, match="only a whole topic can be copied into"):
        copied(warehouse, {"orders": {0: some(0, 1)}}, into="persistent://t/n/orders-partition-3")


def test_a_partition_of_the_source_is_no_topic_to_copy(warehouse):
    with pytest.raises(
        RefusedError, match=r"only a whole topic can be copied \(pass the topic persistent://t/n/orders"
    ):
        copied(warehouse, {"persistent://t/n/orders-partition-3": {0: some(0, 1)}})


def test_topics_of_pulsar_go_into_a_stream_by_their_names_within_their_namespaces(warehouse):
    """Two that would go into one are refused, before anything is copied."""
    records = {f"persistent://t/n/{name}": {0: some(0, 1)} for name in "ab"}
    reports = copied(warehouse, records, topics=tuple(records), into="shop/")
    assert [(report.topic, report.error, report.records) for report in reports] == [
        ("shop/a", None, 1),
        ("shop/b", None, 1),
    ]
    same = {name: {0: some(0, 1)} for name in ("persistent://t/n/a", "persistent://t/m/a")}
    with pytest.raises(
        RefusedError, match="persistent://t/n/a and persistent://t/m/a cannot both be copied into other/a"
    ):
        copied(warehouse, same, topics=tuple(same), into="other/")
    assert TopicName("other", "a") not in warehouse.store.topics()


class GrowingSource(ListedSource):
    """Its streams stay active, and at the first look for new topics it has `later` as well."""

    def __init__(self, warehouse, records, later):
        super().__init__(warehouse, records)
        self.later, self.looks = later, 0

    def topics(self, pattern):
        self.looks += 1
        if self.looks == 2:
            self.records = {**self.records, **self.later}
        return super().topics(pattern)

    def stream(self, *given):
        stream = super().stream(*given)
        stream.is_active = True
        return stream


def followed(warehouse, records, later, into):
    """What a continuous ingest tells that has looked for new topics three times."""
    source = GrowingSource(warehouse, records, later)
    request = IngestRequest({}, pattern=".*", into=into, continuous=True)
    return ingest(warehouse, source, request, lambda _batch: None, lambda: source.looks == 4)


def test_a_look_that_finds_no_new_topic_ends_nothing(warehouse):
    (report,) = followed(warehouse, {"orders": {0: some(0, 1)}}, {}, into="copy")
    assert (report.topic, report.error, report.records) == ("copy", None, 1)


def test_a_source_that_does_not_answer_is_not_asked_for_new_topics(warehouse):
    """An answer that it waits for would keep the ingest from telling that the source is away."""
    source = GrowingSource(warehouse, {"orders": {0: some(0, 1)}}, {})
    looks = []

    def stops():
        looks.append(source.looks)
        source.is_silent = 2 < len(looks) < 20
        return source.looks == 4

    ingest(warehouse, source, IngestRequest({}, pattern=".*", continuous=True), lambda _batch: None, stops)
    assert len(looks) >= 20 and len(set(looks[3:20])) == 1


class SetBack(GrowingSource):
    """While its first topics are looked for, the clock is ahead; then it is set right."""

    def topics(self, pattern):
        if self.looks == 1:
            self.warehouse.clock.advance(-(10**10))
        return super().topics(pattern)


def test_new_topics_are_looked_for_also_once_a_clock_that_was_ahead_is_set_right(warehouse):
    source = SetBack(warehouse, {"orders": {0: some(0, 1)}}, {"later": {0: some(0, 1)}})
    request = IngestRequest({}, pattern=".*", continuous=True)
    tries = iter(range(100))
    reports = ingest(warehouse, source, request, lambda _: None, lambda: source.looks == 4 or next(tries) == 99)
    assert {report.source for report in reports} == {"orders", "later"}


def test_a_new_topic_without_a_place_stops_no_other(warehouse):
    """C50: as one that cannot be copied, it ends with its error, told once."""
    later = {"a-partition-3": {0: some(0, 1)}, "b": {0: some(0, 1)}}
    reports = followed(warehouse, {"orders": {0: some(0, 1)}}, later, into="persistent://t/n/")
    found = {report.source: (report.error, report.records) for report in reports}
    refused, _ = found.pop("a-partition-3")
    assert "only a whole topic can be copied into" in refused
    assert found == {"orders": (None, 1), "b": (None, 1)}
    assert len(reports) == 3


def test_a_topic_without_a_place_that_is_there_from_the_start_stops_no_other(warehouse):
    records = {"a-partition-3": {0: some(0, 1)}, "b": {0: some(0, 1)}}
    refused, other = copied(warehouse, records, topics=(), pattern=".*", into="persistent://t/n/")
    assert (refused.source, refused.topic) == ("a-partition-3", "persistent://t/n/a-partition-3")
    assert "only a whole topic can be copied into" in refused.error
    assert refused.refused
    assert (other.source, other.error, other.records) == ("b", None, 1)


def test_a_record_that_is_refused_is_no_refused_ingest(warehouse):
    """The topic was created for it by then."""
    (report,) = copied(warehouse, {"orders": {0: [Record(None, b"v", 1_000, partition=0, offset=0)]}})
    assert "it has no key" in report.error
    assert not report.refused


def test_several_topics_are_not_copied_into_one(warehouse):
    records = {"a": {0: some(0, 1)}, "b": {0: some(0, 1)}}
    for asked in ({}, {"topics": (), "pattern": ".*"}):
        with pytest.raises(RefusedError, match="2 topics cannot be copied into one topic, copy"):
            copied(warehouse, records, into="copy", **asked)
    assert warehouse.store.topics() == ()


def test_a_second_topic_for_the_place_of_one_stops_neither(warehouse):
    reports = followed(warehouse, {"orders": {0: some(0, 1)}}, {"others": {0: some(0, 1)}}, into="copy")
    errors = {report.source: report.error for report in reports}
    assert errors["orders"] is None
    assert "copy is a copy of Listed's orders, not of others" in errors["others"]


class MeetingSource(ListedSource):
    """`meets` happens at the beginning of the first call of that name."""

    def __init__(self, warehouse, records, call, meets):
        super().__init__(warehouse, records)
        self.call, self.meets = call, meets

    def settings(self, *given):
        self.meet("settings")
        return super().settings(*given)

    def continuations(self, *given):
        self.meet("continuations")
        return super().continuations(*given)

    def stream(self, *given):
        self.meet("stream")
        return super().stream(*given)

    def meet(self, call):
        if call == self.call:
            self.call = ""
            self.meets(self)


def meeting(warehouse, records, call, meets, into="copy"):
    source = MeetingSource(warehouse, records, call, meets)
    (report,) = ingest(
        warehouse, source, IngestRequest({}, topics=tuple(records), into=into), lambda _: None, lambda: False
    )
    return report


def test_two_ingests_that_create_the_same_copy_at_once_are_two_ingests_of_it(warehouse):
    records = {"orders": {0: some(0, 1)}}
    report = meeting(warehouse, records, "settings", lambda _: copied(warehouse, records, into="copy"))
    assert (report.error, report.records) == (None, 0)
    assert volume_of(warehouse.store.segments(state(warehouse, "copy"))).records == 1


def test_a_copy_keeps_what_was_set_on_its_source_as_of_the_last_ingest_that_was_told(warehouse):
    source = ListedSource(warehouse, {"orders": {0: some(0, 1)}})
    kept = []
    for config in (None, {"retention.ms": "5"}, None, {}):
        source.config = config
        (report,) = ingest(warehouse, source, IngestRequest({}, topics=("orders",)), lambda _: None, lambda: False)
        assert report.error is None
        kept.append(source_of(warehouse.store, state(warehouse)).config)
    assert kept == [None, {"retention.ms": "5"}, {"retention.ms": "5"}, {}]


@pytest.mark.parametrize("config", [["retention.ms"], {"retention.ms": 5}, "retention.ms"])
def test_settings_that_are_no_texts_are_damage(config):
    stored = CopiedTopic("orders", "7").to_json() | {"config": config}
    with pytest.raises((ValueError, TypeError)):
        CopiedTopic.from_json(stored)


@pytest.mark.parametrize(("call", "first"), [("settings", "others"), ("continuations", "orders")])
def test_of_two_topics_that_are_copied_into_one_at_once_one_is(warehouse, call, first):
    reports = {}
    records = {"orders": {0: some(0, 5, 6)}, "others": {0: some(0, 1)}}

    def meet(_):
        (reports["others"],) = copied(warehouse, {"others": records["others"]}, into="copy")

    reports["orders"] = meeting(warehouse, {"orders": records["orders"]}, call, meet)
    (second,) = {"orders", "others"} - {first}
    assert reports[first].error is None
    assert f"{first}, not of {second}" in reports[second].error
    assert source_of(warehouse.store, state(warehouse, "copy")).name == first
    assert volume_of(warehouse.store.segments(state(warehouse, "copy"))).records == len(records[first][0])


def test_a_copy_that_another_topic_has_taken_meanwhile_gets_no_record(warehouse):
    def take(_):
        put_source(warehouse.store, state(warehouse, "copy"), CopiedTopic("others", "", ()))

    report = meeting(warehouse, {"orders": {0: some(0, 5, 6)}}, "stream", take)
    assert "copy is a copy of Listed's others, not of orders" in report.error
    assert volume_of(warehouse.store.segments(state(warehouse, "copy"))).records == 0


def test_a_copy_does_not_grow_for_a_topic_that_was_recreated(warehouse):
    def recreate(source):
        source.topic = lambda name: SourceTopic(name, "another id", (0, 1, 2))

    report = meeting(warehouse, {"orders": {0: some(0, 5, 6)}}, "stream", recreate)
    assert "was deleted and recreated since it was copied" in report.error
    assert len(state(warehouse, "copy").logs) == 1


@pytest.mark.parametrize("asked", [{"topics": ()}, {"topics": ("orders",), "pattern": "o.*"}])
def test_a_request_says_one_thing_to_copy(asked):
    with pytest.raises(RefusedError, match="pass either topics or a pattern"):
        IngestRequest({}, **asked)


def test_a_request_by_pattern_has_a_regular_expression():
    with pytest.raises(RefusedError, match="'shop-\\(' is not a regular expression: missing"):
        IngestRequest({}, pattern="shop-(")


class EpochSource(ListedSource):
    """Its leader epochs, one for each time that it is asked, the last one from then on; `cut`: where it was cut."""

    def __init__(self, warehouse, records, *epochs, cut=None):
        super().__init__(warehouse, records)
        self.left, self.cut, self.streams = list(epochs), cut, 0

    def epochs(self, topic):
        epoch = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return dict.fromkeys(topic.partitions, epoch)

    def continuations(self, topic, copy):
        asked = epochs_to_ask(copy, {p: replace(log, leader_epoch=self.left[0]) for p, log in self.logs(topic).items()})
        cuts = {p: SourceWasCut(at.offset, self.cut) for p, at in asked.items() if self.cut is not None}
        return with_cuts(super().continuations(topic, copy), cuts)

    def stream(self, *given):
        self.streams += 1
        return super().stream(*given)


def epochs_of(warehouse):
    return [log.source_epoch for log in state(warehouse).logs]


def run(warehouse, source, **request):
    (report,) = ingest(
        warehouse, source, IngestRequest({}, topics=("orders",), **request), lambda _: None, lambda: False
    )
    return report


def test_a_copy_has_the_leader_epoch_that_it_was_read_in(warehouse):
    """C72: one of an earlier Lithify gets it with the next ingest, also if there is nothing to copy."""
    records = {"orders": {0: some(0, 1), 1: []}}
    assert run(warehouse, EpochSource(warehouse, records, None)).error is None
    assert epochs_of(warehouse) == [None, None]
    assert run(warehouse, EpochSource(warehouse, records, 4)).error is None
    assert epochs_of(warehouse) == [4, None]
    version = state(warehouse).version
    assert run(warehouse, EpochSource(warehouse, records, 6)).error is None
    assert (epochs_of(warehouse), state(warehouse).version) == ([4, None], version)


@pytest.mark.parametrize("moves", [(4, 4, 5), (4, 5)])
def test_what_was_read_while_the_leader_changed_is_read_again(warehouse, moves):
    """C72: whether it changed before the batch was read or meanwhile, nothing of that batch is committed."""
    source = EpochSource(warehouse, {"orders": {0: some(0, 1, 2)}}, *moves)
    report = run(warehouse, source)
    assert (report.error, report.records, report.batches, source.streams) == (None, 2, 1, 2)
    assert epochs_of(warehouse) == [5]


def test_a_leader_that_changes_again_and_again_ends_the_copy(warehouse):
    source = EpochSource(warehouse, {"orders": {0: some(0, 1)}}, *range(100))
    assert "Listed's orders-0 has a new leader" in run(warehouse, source).error
    assert source.streams == FAILURES


def test_a_copy_does_not_go_on_in_a_source_that_was_cut(warehouse):
    """C72: the error says what to do, which depends on how far rounds have compacted the copy."""
    records = {"orders": {0: some(0, 1, 2, 3)}}
    run(warehouse, EpochSource(warehouse, records, 4))
    error = run(warehouse, EpochSource(warehouse, records, 6, cut=2)).error
    assert "orders-0: Listed's orders-0 has lost its records from offset 2 on and now has others there" in error
    assert "`lake.topic('orders').truncate(partition=0, to=2)`" in error
    truncate(warehouse, TopicName("default", "orders"), 0, 2)
    assert epochs_of(warehouse) == [4]
    assert run(warehouse, EpochSource(warehouse, records, 6)).error is None
    assert volume_of(warehouse.store.segments(state(warehouse))).records == 3


class AwaySource(ListedSource):
    """Its streams fail so many times, and it is silent after each of the first `silences`, for one look."""

    def __init__(self, warehouse, records, failures, silences=0):
        super().__init__(warehouse, records)
        self.failures, self.silences, self.failed = failures, silences, 0

    @property
    def is_silent(self):
        if self.failed and self.silences:
            self.silences -= 1
            return True
        return False

    @is_silent.setter
    def is_silent(self, _value):
        """It is not set."""

    def stream(self, *given):
        if self.failed == self.failures:
            return super().stream(*given)
        self.failed += 1
        return ListedStream(failure=BrokerError("Kafka is away"))


@pytest.mark.parametrize(
    ("continuous", "failures", "silences", "records", "failed"),
    [
        (True, 1, 1, 2, 1),
        (True, 2, 0, 2, 2),
        (True, FAILURES, 0, 0, FAILURES),
        (True, FAILURES, 1, 2, FAILURES),  # of an outage none counts
        (False, 1, 1, 0, 1),
    ],
)
def test_a_continuous_ingest_waits_for_its_source_and_goes_on(
    warehouse, continuous, failures, silences, records, failed
):
    """It gives up where the source answers and fails it several times in a row."""
    source = AwaySource(warehouse, {"orders": {0: some(0, 1, 2)}}, failures, silences)
    report = run(warehouse, source, continuous=continuous)
    assert (report.records, source.failed) == (records, failed)
    assert report.error == (None if records else "Kafka is away")


class EndingSource(ListedSource):
    """Its engine ends by the signal that stops the ingest, which sees both at its next look."""

    stopped = False

    def stream(self, topic, starts, run_id, on_batch):
        self.stopped = True
        return ListedStream(failure=EngineError("the JVM has ended"))


@pytest.mark.parametrize("continuous", [True, False])
def test_an_engine_that_ends_by_the_same_signal_is_no_error(warehouse, continuous):
    source = EndingSource(warehouse, {"orders": {0: some(0, 1)}})
    given = IngestRequest({}, topics=("orders",), continuous=continuous)
    (report,) = ingest(warehouse, source, given, lambda _batch: None, lambda: source.stopped)
    assert report.error is None
    (report,) = ingest(warehouse, source, given, lambda _batch: None, lambda: False)
    assert "the JVM has ended" in report.error


class RestoredSource(ListedSource):
    """It is away during its stream, and is back with the records `then`, in the leader epoch of before."""

    def __init__(self, warehouse, records, then):
        super().__init__(warehouse, records)
        self.then, self.silences, self.began = then, SILENCES, False

    @property
    def is_silent(self):
        if not self.began or self.records is self.then:
            return False
        self.silences -= 1
        if not self.silences:
            self.records = self.then
        return True

    @is_silent.setter
    def is_silent(self, _value):
        """It is not set."""

    def epochs(self, topic):
        return dict.fromkeys(topic.partitions, 4)

    def continuations(self, topic, copy):
        return with_cuts(super().continuations(topic, copy), cuts_by_records(copy, self.signs(topic, copy)))

    def after_read(self, topic, copy, partitions):
        return {p: cut for p, cut in cuts_by_records(copy, self.signs(topic, copy)).items() if p in partitions}

    def signs(self, topic, copy):
        return {
            p: signs_of(record.timestamp, record.key, record.value)
            for p, offset in records_to_compare(copy, self.logs(topic)).items()
            for record in self.records[topic.name][p]
            if record.offset == offset
        }

    def stream(self, topic, starts, run_id, on_batch):
        super().stream(topic, starts, run_id, on_batch)
        self.began = True
        return LastingStream(self, topic, on_batch)


SILENCES = 1 + SILENT_MS // LOOK_MS


class LastingStream(ListedStream):
    """Active until its source is back, from which it gets one more batch."""

    def __init__(self, source, topic, on_batch):
        super().__init__()
        self.source, self.topic, self.on_batch = source, topic, on_batch

    @property
    def is_active(self):
        if self.source.records is not self.source.then:
            return True
        try:
            self.on_batch(self.batch())
        except LithifyError as error:
            self.failure = error
        return False

    @is_active.setter
    def is_active(self, _value):
        """It is not set."""

    def batch(self):
        starts = {0: self.source.warehouse.store.load(TopicName("default", "orders")).log(0).log_end_offset}
        return ListedBatch(self.source, self.topic, starts)


@pytest.mark.parametrize("restored", [False, True])
def test_a_source_that_was_away_is_compared_with_the_copy_before_its_batch_is_committed(warehouse, restored):
    """C72: a cluster whose disks were restored counts the same epochs again."""
    report = run(warehouse, RestoredSource(warehouse, {"orders": {0: BEFORE}}, there(restored)), continuous=True)
    check_compared(report, restored)


class SwitchedSource(RestoredSource):
    """It is never away, and another one, in the same leader epoch, as soon as its second batch begins to be read."""

    is_silent = False

    def stream(self, topic, starts, run_id, on_batch):
        super().stream(topic, starts, run_id, on_batch)
        stream = SwitchedStream(self, topic, on_batch)
        stream.take()
        return stream


class SwitchedStream(LastingStream):
    is_active = False

    def take(self):
        try:
            self.on_batch(SwitchedBatch(self.source, self.topic, self.batch().starts))
        except LithifyError as error:
            self.failure = error


class SwitchedBatch(ListedBatch):
    def copy(self, copying):
        self.source.records = self.source.then
        return super().copy(copying)


@pytest.mark.parametrize("restored", [False, True])
def test_a_source_that_becomes_another_one_while_a_batch_is_read_is_compared_before_the_commit(warehouse, restored):
    """C72: else the next batch is compared with what was copied from the other one, and nobody notices ever."""
    report = run(warehouse, SwitchedSource(warehouse, {"orders": {0: BEFORE}}, there(restored)))
    check_compared(report, restored)


BEFORE = some(0, 1, 2)


def there(restored):
    """What is there afterwards, in which the copy's records are others if it was restored."""
    return {"orders": {0: [*(some(0, 1, 2, timestamp=2_000) if restored else BEFORE), *some(0, 7, 8)]}}


def check_compared(report, restored):
    if restored:
        assert "Listed's orders-0 has lost its records below 5 and now has others there" in report.error
    else:
        assert report.error is None
    assert report.records == (2 if restored else 4)
