"""A topic that fails while an ingest copies others is reported at once: the note `failed`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import BrokerError, EngineError, WarehouseError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import volume_of
from lithify.model.sources.source import IngestRequest
from lithify.ports.store import CommitUnknownError
from lithify.service.ingest.ingest import ingest
from support.topics.listed_source import ListedSource
from support.topics.memory_topic import a_warehouse

GOOD = {0: [Record(b"k", b"v", 1_000, partition=0, offset=0)]}
BAD = {0: [Record(None, b"v", 1_000, partition=0, offset=0)]}


def followed(source, looks, **request):
    """What a continuous ingest returns that is stopped after so many looks, and its notes of failed topics."""
    notes, asked = [], iter(range(looks))
    given = IngestRequest({}, continuous=True, **request)
    reports = ingest(source.warehouse, source, given, lambda _: None, lambda: next(asked, None) is None, notes.append)
    return reports, [note for note in notes if note.event == "failed"]


class FollowedSource(ListedSource):
    """The streams of topics that do not fail stay active."""

    def stream(self, *given):
        stream = super().stream(*given)
        stream.is_active = stream.failure is None
        return stream


@pytest.mark.parametrize(
    ("topics", "failed"),
    [
        (["bad"], set()),
        (["bad", "good"], {"bad"}),
        (["bad", "worse"], set()),
        (["bad", "good", "worse"], {"bad", "worse"}),
        (["a-partition-3", "bad"], set()),
        (["a-partition-3", "good"], {"a-partition-3"}),
    ],
)
def test_topics_that_fail_or_are_refused_are_reported_if_another_continues(topics, failed):
    """Once, as their reports say it later. If no other continues, the ingest ends with their errors."""
    source = FollowedSource(a_warehouse(), {topic: GOOD if topic == "good" else BAD for topic in topics})
    reports, notes = followed(source, 9, pattern=".*")
    errors = {report.source: f"{report.error_code}]: {report.error}" for report in reports if report.error}
    assert set(errors) == {*topics} - {"good"}
    assert {note.source: note.text.partition("error[")[2] for note in notes} == {t: errors[t] for t in failed}
    assert len(notes) == len(failed)


class ScriptedSource(ListedSource):
    """Each stream of a topic ends after so many looks, with the error that is next in its script."""

    def __init__(self, scripts):
        super().__init__(a_warehouse(), dict.fromkeys(scripts, GOOD))
        self.scripts, self.last = scripts, {}

    def stream(self, topic, *_given):
        looks, self.last[topic] = self.scripts[topic].pop(0)
        return ScriptedStream(looks, self.last[topic])


class ScriptedStream:
    def __init__(self, looks, failure):
        self.looks, self.failure = looks, failure

    @property
    def is_active(self):
        self.looks -= 1
        return self.looks >= 0

    def stop(self):
        """There is nothing under way."""

    def end(self):
        return self.failure if self.looks < 0 else None


AWAY = WarehouseError("the catalog is away")
AWAY.is_outage = True
FAILURES = [AWAY, BrokerError("the broker has failed"), EngineError("the job has failed"), None]
ENDLESS = (10**6, None)
SCRIPTS = st.lists(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(FAILURES)), max_size=6), max_size=4)


@given(SCRIPTS, st.integers(1, 200))
def test_a_topic_that_is_reported_as_failed_has_ended(scripts, looks):
    """Each that ended, once, with the error of its last stream: not one that was away and is tried again."""
    by_topic = {str(i): [*script, ENDLESS] for i, script in enumerate(scripts)}
    source = ScriptedSource({**by_topic, "good": [ENDLESS]})
    reports, notes = followed(source, looks, topics=tuple(source.scripts))
    failed = {report.source: report.error for report in reports if report.error is not None}
    assert failed == {topic: str(source.last[topic]) for topic in failed}
    assert sorted(note.source for note in notes) == sorted(failed)
    assert all(note.text.endswith(f": {failed[note.source]}") for note in notes)


class GoneStore:
    """The catalog goes away while it answers a commit, which landed or did not, and is back after a minute."""

    def __init__(self, warehouse, *, lands):
        self.real, self.clock, self.lands = warehouse.store, warehouse.clock, lands
        self.back_ms = None

    def __getattr__(self, name):
        call = getattr(self.real, name)
        return partial(self._called, name, call) if callable(call) else call

    def _called(self, name, call, *args, **kwargs):
        if self.back_ms is not None and self.clock.monotonic_ms() < self.back_ms:
            raise AWAY
        if name == "commit" and self.back_ms is None and args[1].add:
            if self.lands:
                call(*args, **kwargs)
            self.back_ms = self.clock.monotonic_ms() + 60_000
            raise CommitUnknownError("the connection is lost")
        return call(*args, **kwargs)


@pytest.mark.parametrize("lands", [False, True])
def test_a_copy_whose_commit_lost_its_answer_continues_once_the_catalog_answers(lands):
    """A copy continues where its log ends: nothing is lost or copied twice, and the topic has not failed."""
    warehouse = a_warehouse()
    source = FollowedSource(warehouse, {"orders": GOOD, "others": GOOD})
    gone = replace(warehouse, store=GoneStore(warehouse, lands=lands))
    asked, notes = iter(range(2_000)), []
    request = IngestRequest({}, topics=("orders", "others"), continuous=True)
    reports = ingest(gone, source, request, lambda _: None, lambda: next(asked, None) is None, notes.append)
    assert [report.error for report in reports] == [None, None]
    assert [note.event for note in notes if note.event in {"outage", "recovered", "failed"}] == ["outage", "recovered"]
    for topic in source.records:
        state = warehouse.store.load(TopicName("default", topic))
        assert volume_of(warehouse.store.segments(state)).records == 1


def test_a_source_with_too_many_partitions_leaves_no_topic():
    source = ListedSource(a_warehouse(), {"wide": {20_000: GOOD[0]}})
    (report,) = ingest(source.warehouse, source, IngestRequest({}, ("wide",)), lambda _: None, lambda: False, print)
    assert "partitions=20001" in report.error
    assert not [*source.warehouse.store.topics()]
