"""Streams and the settings that their topics inherit (C43, C56)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import permutations
from threading import Thread
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lithify.api.lake import Lake
from lithify.errors import (
    ConflictError,
    InvalidSettingError,
    PolicyError,
    RefusedError,
    UnknownStreamError,
    UnknownTopicError,
)
from lithify.model.names import parse_topic
from lithify.model.record import Record
from lithify.model.settings.inheritance import Origin
from lithify.model.settings.stream_attributes import StreamAttributes, with_attributes
from lithify.model.settings.topic_settings import settings_of
from lithify.ports.store import Warehouse
from lithify.service.change.alter import alter
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.streams import edit_stream
from lithify.service.change.sweep import refuse_sweep, sweep
from lithify.service.creation import create_topic, load_or_create
from lithify.service.look.status import topic_infos
from lithify.service.round.compact import RunRequest, compact, plan_compact
from lithify.testing.oracle_engine import OracleEngine
from support.topics.memory_topic import a_warehouse

ORDERS = parse_topic("eu/orders").name


@pytest.fixture
def warehouse() -> Warehouse:
    return a_warehouse(now_ms=1_000_000)


@pytest.fixture
def lake(warehouse: Warehouse) -> Lake:
    return Lake(warehouse)


def values(lake: Lake, name: str, *names: str) -> dict[str, tuple[str, str]]:
    info = lake.topic(name).info()
    return {setting: (info.config[setting], info.config_from[setting]) for setting in names}


def changed_behind(warehouse: Warehouse, **attributes: str) -> None:
    """As an edit leaves it that died before it got to the topics."""
    warehouse.store.change_stream("eu", attributes, [])


def test_a_topic_inherits_what_it_is_not_given(lake):
    """C56: presets and `config` are the topic's own, also where they say what the stream says."""
    lake.create_stream("eu", {"compact": "false", "ttl": "30", "deleteretention": "1d", "defaultpartitions": "3"})
    lake.create_topic("eu/orders", config={"retention.ms": 30_000})
    lake.create_topic("eu/other", 2, config={"cleanup.policy": "compact"}, like="pulsar")
    names = ("cleanup.policy", "retention.ms", "delete.retention.ms", "null.key")
    assert values(lake, "eu/orders", *names) == {
        "cleanup.policy": ("delete", Origin.STREAM),
        "retention.ms": ("30000", Origin.TOPIC),
        "delete.retention.ms": ("86400000", Origin.STREAM),
        "null.key": ("reject", Origin.DEFAULT),
    }
    assert values(lake, "eu/other", *names) == {
        "cleanup.policy": ("compact", Origin.TOPIC),
        "retention.ms": ("30000", Origin.STREAM),
        "delete.retention.ms": ("0", Origin.TOPIC),
        "null.key": ("drop", Origin.TOPIC),
    }
    assert [topic.info().partitions for topic in lake.stream("eu").topics()] == [3, 2]
    assert lake.create_topic("asia/orders").state().settings == settings_of({})


def test_a_contradiction_with_the_stream_is_refused(lake):
    """C56."""
    lake.create_stream("eu", {"compact": "false"})
    with pytest.raises(InvalidSettingError, match="side-by-side needs compact"):
        lake.create_topic("eu/orders", config={"compaction.mode": "side-by-side"})
    assert lake.stream("eu").topics() == ()


def test_an_edit_changes_what_topics_inherit_and_makes_them_due(lake, warehouse):
    """C43, C56: in one commit each; settings of their own stay, and topics of other streams."""
    lake.create_stream("eu", {"compact": "false", "compression": "lz4"})
    for name in ("eu/a", "eu/b", "asia/a"):
        lake.create_topic(name, config={"versions.kept": 3}).append([Record(b"k", b"1"), Record(b"k", b"2")])
    lake.topic("eu/b").alter({"cleanup.policy": "delete"})

    report = lake.stream("eu").edit({"compact": "true", "mincompactionlag": "5"}, unset=["compression"])

    assert {name: (c.before, c.after) for name, c in report.attributes.items()} == {
        "compact": ("false", "true"),
        "compression": ("lz4", ""),
        "mincompactionlag": ("", "5"),
    }
    a, b = report.topics
    assert a.altered is not None and b.altered is not None
    assert list(a.altered.settings) == [
        "cleanup.policy",
        "min.compaction.lag.ms",
        "min.compaction.lag.from",
        "compression.type",
    ]
    assert list(b.altered.settings) == ["min.compaction.lag.ms", "min.compaction.lag.from", "compression.type"]
    assert (a.altered.logs_due, b.altered.logs_due, report.failed) == (1, 0, ())
    assert lake.topic("eu/a").state().log(0).round_required.startswith("changed: cleanup.policy")
    assert lake.topic("asia/a").state().version == 2
    again = lake.stream("eu").edit({"compact": "true"})
    assert (again.attributes, [topic.altered for topic in again.topics]) == ({}, [None, None])


def test_compact_is_switched_on_and_off_for_topics_with_data(lake, warehouse):
    """C43, C56."""
    lake.create_stream("eu")
    lake.create_topic("eu/orders").append([Record(b"k", b"1"), Record(b"k", b"2")])
    lake.stream("eu").edit({"compact": "false"})
    with pytest.raises(PolicyError):
        compact(warehouse, OracleEngine(warehouse.files), ORDERS, RunRequest())
    lake.stream("eu").edit({"compact": "true"})
    report = compact(warehouse, OracleEngine(warehouse.files), ORDERS, RunRequest())
    assert (report.logs[0].records_in, report.logs[0].records_out) == (2, 1)


def test_a_topic_that_cannot_inherit_is_named_and_the_others_go_on(lake, warehouse):
    """C56, C50: a repetition tries it again."""
    lake.create_stream("eu", {"compact": "true"})
    lake.create_topic("eu/a", config={"compaction.mode": "side-by-side"})
    lake.create_topic("eu/b")
    report = lake.stream("eu").edit({"compact": "false"})
    (failed,) = report.failed
    assert failed.topic == "eu/a"
    assert "side-by-side needs compact" in str(failed.error)
    assert lake.topic("eu/b").state().settings.cleanup_policy == "delete"
    with pytest.raises(InvalidSettingError):  # no round under settings that the stream no longer has
        compact(warehouse, OracleEngine(warehouse.files), parse_topic("eu/a").name, RunRequest())
    lake.topic("eu/a").alter({"cleanup.policy": "compact"})
    assert lake.stream("eu").edit({"compact": "false"}).failed == ()
    assert compact(warehouse, OracleEngine(warehouse.files), parse_topic("eu/a").name, RunRequest()).failed == ()


def test_a_refused_edit_changes_nothing(lake, warehouse):
    """C56."""
    lake.create_stream("eu", {"ttl": "5"})
    with pytest.raises(InvalidSettingError, match="contradicts"):
        lake.stream("eu").edit({"retention.ms": 7})
    with pytest.raises(UnknownStreamError, match="did you mean eu"):
        lake.stream("e")
    assert warehouse.store.stream_attributes(["eu"]) == {"eu": {"ttl": "5"}}


def test_what_an_interrupted_edit_left_undone_is_done_by_the_next_round(lake, warehouse):
    """C43, C56: and the plan shows it."""
    lake.create_stream("eu")
    lake.create_topic("eu/orders").append([Record(b"k", b"", 1), Record(b"k", None, 1)])
    changed_behind(warehouse, **{"empty.value": "tombstone", "deleteretention": "0"})
    assert values(lake, "eu/orders", "empty.value") == {"empty.value": ("value", Origin.STREAM)}
    planned = plan_compact(warehouse, 1, ORDERS, RunRequest())
    report = compact(warehouse, OracleEngine(warehouse.files), ORDERS, RunRequest())
    assert (planned.logs[0].records_in, report.logs[0].records_out) == (2, 0)
    assert values(lake, "eu/orders", "empty.value") == {"empty.value": ("tombstone", Origin.STREAM)}


def test_what_an_interrupted_edit_left_undone_is_done_before_retention(lake, warehouse):
    """C24, C56: nothing is dropped by a time that the stream no longer has."""
    lake.create_stream("eu", {"compact": "false", "ttl": "1"})
    lake.create_topic("eu/orders").append([Record(b"k", b"1", 1)])
    changed_behind(warehouse, ttl="0")
    assert not retain(warehouse, ORDERS).changed


HOUR_MS = 3_600_000


def rewritten(lake: Lake, warehouse: Warehouse, kept: int = 10) -> None:
    """A topic that inherits one hour for its versions, after two rounds; at most `kept` of them stay."""
    lake.create_stream("eu", {"versions.retention.ms": HOUR_MS})
    topic = lake.create_topic("eu/orders", config={"versions.kept": kept})
    for _ in range(2):
        topic.append([Record(b"k", b"1", 1), Record(b"k", b"2", 1)])
        compact(warehouse, OracleEngine(warehouse.files), ORDERS, RunRequest())


def test_what_an_interrupted_edit_left_undone_counts_where_versions_expire(lake, warehouse):
    """C7, C56: none expires after a time that the stream no longer has, and none is listed."""
    rewritten(lake, warehouse)
    changed_behind(warehouse, **{"versions.retention.ms": str(30 * HOUR_MS)})
    warehouse.clock.advance(2 * HOUR_MS)
    assert expire_versions(warehouse, ORDERS) is None
    assert lake.topic("eu/orders").sweep().expired_versions == ()
    changed_behind(warehouse, **{"versions.retention.ms": str(HOUR_MS)})
    listed = lake.topic("eu/orders").sweep().expired_versions
    assert expire_versions(warehouse, ORDERS).expired == listed != ()


def test_what_an_interrupted_edit_left_undone_counts_where_files_are_swept(lake, warehouse):
    """C6, C56: none is deleted after a time that the stream no longer has, and none is listed."""
    rewritten(lake, warehouse, kept=1)
    changed_behind(warehouse, **{"versions.retention.ms": str(30 * HOUR_MS)})
    warehouse.clock.advance(2 * HOUR_MS)
    for delete in (False, True):
        assert sweep(warehouse, ORDERS, delete=delete).files == ()
    changed_behind(warehouse, **{"versions.retention.ms": str(HOUR_MS)})
    assert sweep(warehouse, ORDERS, delete=True).files


def test_no_version_expires_and_no_file_is_swept_where_a_topic_cannot_inherit(lake, warehouse):
    """C56."""
    rewritten(lake, warehouse)
    lake.topic("eu/orders").alter({"compaction.mode": "side-by-side"})
    changed_behind(warehouse, compact="false")
    warehouse.clock.advance(2 * HOUR_MS)
    for verb in (expire_versions, refuse_sweep, partial(sweep, delete=True)):
        with pytest.raises(InvalidSettingError, match="side-by-side needs compact"):
            verb(warehouse, ORDERS)


def test_a_setting_is_pinned_and_inherited_again(lake):
    """C56: a pinned one stays whatever the stream says."""
    lake.create_stream("eu", {"deleteretention": "5"})
    lake.create_topic("eu/orders").append([Record(b"k", b"1")])
    topic = lake.topic("eu/orders")
    pinned = topic.alter({"delete.retention.ms": 5})
    assert (pinned.changed, pinned.settings, pinned.own) == (True, {}, ("delete.retention.ms",))
    assert not topic.alter({"delete.retention.ms": 5}).changed
    lake.stream("eu").edit({"deleteretention": "6"})
    assert topic.state().settings.delete_retention_ms == 5
    freed = topic.alter(unset=["delete.retention.ms"])
    assert (freed.settings["delete.retention.ms"].after, freed.inherited) == ("6", ("delete.retention.ms",))
    lake.stream("eu").edit(unset=["deleteretention"])
    assert topic.state().settings == settings_of({})


def test_topics_keep_what_they_inherited_where_nothing_is_known_of_their_stream(lake, warehouse):
    """C56: as after a catalog was lost, which `repair` recreated; nothing is compacted that was to be kept."""
    lake.create_stream("eu", {"compact": "false", "ttl": "0"})
    lake.create_topic("eu/orders").append([Record(b"k", b"1"), Record(b"k", b"2")])
    warehouse.store._streams.clear()  # type: ignore[attr-defined]
    alter(warehouse, ORDERS, {"versions.kept": 3})
    assert lake.topic("eu/orders").state().settings.cleanup_policy == "delete"
    with pytest.raises(PolicyError):
        compact(warehouse, OracleEngine(warehouse.files), ORDERS, RunRequest())


def test_an_append_creates_a_topic_where_its_stream_says_so(lake, warehouse):
    """C56."""
    lake.create_stream("eu", {"defaultpartitions": "2", "compression": "lz4"})
    for call in (lambda: lake.topic("eu/orders"), lambda: load_or_create(warehouse, ORDERS)):
        with pytest.raises(UnknownTopicError):
            call()
    lake.stream("eu").edit({"autocreate": "true"})
    topic = lake.topic("eu/orders")
    assert warehouse.store.topics() == ()
    assert topic.append([Record(b"k", b"1")]).records == 1
    assert (len(topic.state().logs), topic.state().settings.compression_type) == (2, "lz4")
    assert topic.append([Record(b"k", b"2")]).version == 3
    assert load_or_create(warehouse, parse_topic("eu/other").name).version == 1


def test_two_first_appends_at_once_create_one_topic(lake, warehouse, monkeypatch):
    """C56."""
    lake.create_stream("eu", {"autocreate": "true"})
    load = warehouse.store.load
    first = True

    def overtaken(name):
        nonlocal first
        if first:
            first = False
            create_topic(warehouse, parse_topic("eu/orders"), {})
            raise UnknownTopicError("it was not there")
        return load(name)

    monkeypatch.setattr(warehouse.store, "load", overtaken)
    assert load_or_create(warehouse, ORDERS).version == 1


def test_a_stream_is_deleted_with_its_topics_only_on_request(lake, warehouse):
    """C56."""
    lake.create_stream("eu", {"ttl": "5"})
    lake.create_topic("eu/orders").append([Record(b"k", b"1")])
    with pytest.raises(RefusedError, match="eu: the stream has 1 topic"):
        lake.stream("eu").delete()
    assert warehouse.store.topics() == (ORDERS,)
    report = lake.stream("eu").delete(topics=True)
    assert (report.topics, lake.streams()) == (("eu/orders",), ())


def test_streams_and_their_attributes_are_shown(lake):
    """C56: as JSON has them."""
    lake.create_stream("/apps/events", {"cleanup.policy": "compact,delete", "ttl": "7d"})
    lake.create_topic("eu/orders")
    eu, events = lake.streams()
    with pytest.raises(UnknownStreamError, match="did you mean /apps/events"):
        lake.stream("/apps/event")
    assert (eu.stream, eu.topics) == ("eu", 1)
    assert {value.origin for value in eu.attributes.values()} == {Origin.DEFAULT}
    assert events == lake.stream("/apps/events").info()
    shown = events.to_json()
    assert (shown["stream"], shown["namespace"], shown["topics"]) == ("/apps/events", "mapr.%2Fapps%2Fevents", 0)
    assert shown["attributes"]["ttl"] == {"value": "604800", "from": "stream"}
    assert shown["attributes"]["retention.ms"] == {"value": "604800000", "from": "stream"}
    assert shown["attributes"]["compact"] == {"value": "true", "from": "stream"}
    assert shown["attributes"]["autocreate"] == {"value": "false", "from": "default"}
    assert shown["keeps"] == "the latest record of every key, for 7 d"


class Overtaken:
    """A store in which others do something just before the first such call; of `change_stream` if not told."""

    def __init__(self, store: Any, others: Callable[[], object], call: str = "change_stream") -> None:
        self._store, self._others, self._call = store, [others], call

    def __getattr__(self, name: str) -> Any:
        while name == self._call and self._others:
            self._others.pop()()
        return getattr(self._store, name)


NAMES = st.sampled_from(("compact", "cleanup.policy", "ttl", "retention.ms", "deleteretention"))
VALUES = {
    "compact": ("true", "false"),
    "cleanup.policy": ("compact", "delete", "compact,delete"),
    "ttl": ("0", "5"),
    "retention.ms": ("-1", "5000"),
    "deleteretention": ("1", "2"),
}
CHANGES = st.dictionaries(NAMES, st.integers(0, 2), max_size=2).map(
    lambda some: {name: VALUES[name][n % len(VALUES[name])] for name, n in some.items()}
)
EDITS = st.tuples(CHANGES, st.lists(NAMES, max_size=1, unique=True))


def after(attributes: dict[str, str], edits: tuple[tuple[dict[str, str], list[str]], ...]) -> object:
    """One after the other; None where that cannot be."""
    known = with_attributes(StreamAttributes(), attributes)
    with suppress(InvalidSettingError):
        for config, unset in edits:
            known = with_attributes(known, config, unset)
        return known.given
    return None


@given(given=CHANGES, first=EDITS, second=EDITS)
@settings(max_examples=150, deadline=None)
def test_of_two_edits_at_once_both_count_or_one_is_refused(given, first, second):
    """C56: none takes back what the other did, and what is stored never contradicts."""
    warehouse = a_warehouse(now_ms=1_000_000)
    try:
        Lake(warehouse).create_stream("eu", given)
    except InvalidSettingError:
        assume(False)
    Lake(warehouse).create_topic("eu/orders")
    done: list[tuple[dict[str, str], list[str]]] = []

    def edit(here: Warehouse, config: dict[str, str], unset: list[str]) -> None:
        wanted = {name: value for name, value in config.items() if name not in unset}
        with suppress(InvalidSettingError):
            edit_stream(here, "eu", wanted, unset)
            done.append((wanted, unset))

    other = Thread(target=edit, args=(warehouse, *second))
    edit(replace(warehouse, store=Overtaken(warehouse.store, other.start)), *first)
    if other.ident is None:  # the first had nothing to write
        other.start()
    other.join()

    found = with_attributes(StreamAttributes(), warehouse.store.stream_attributes(["eu"])["eu"])
    assert found.given in [after(given, edits) for edits in permutations(done)]
    state = warehouse.store.load(ORDERS)
    assert state.settings == found.settings


def test_a_topic_has_the_latest_of_two_edits_also_if_the_earlier_commits_last(lake, warehouse):
    """C56: the later one finds the topic as it wants it, and then the earlier one commits what it had read."""
    lake.create_stream("eu")
    lake.create_topic("eu/orders")
    store = Overtaken(warehouse.store, lambda: lake.stream("eu").edit(unset=["retention.ms"]), call="commit")
    report = edit_stream(replace(warehouse, store=store), "eu", {"retention.ms": "-1"})
    assert warehouse.store.load(ORDERS).settings.retention_ms == 604_800_000
    assert [topic.error for topic in report.topics] == [None]


def test_edits_that_contradict_where_nothing_lets_them_take_turns(lake, warehouse):
    """C56: as in a catalog service. The second one says so, and an edit repairs it."""
    lake.create_stream("eu")
    lake.create_topic("eu/orders")
    store = Overtaken(warehouse.store, lambda: lake.stream("eu").edit({"compact": "false"}))
    warehouse.store.edit_lock = lambda _: nullcontext()  # type: ignore[attr-defined]
    with pytest.raises(ConflictError, match="edited at the same time") as conflict:
        edit_stream(replace(warehouse, store=store), "eu", {"cleanup.policy": "compact"})
    assert "lake.stream('eu').edit()" in conflict.value.hint
    assert lake.stream("eu").edit(unset=["compact"]).failed == ()
    assert lake.topic("eu/orders").state().settings.cleanup_policy == "compact"


def test_attributes_that_other_programs_set_are_shown_and_can_be_repaired(lake, warehouse):
    """C50, C56: other streams are listed as usual, and no topic is changed by them."""
    lake.create_stream("eu", {"compact": "false"})
    lake.create_topic("eu/orders").append([Record(b"k", b"1")])
    lake.create_stream("us")
    changed_behind(warehouse, **{"cleanup.policy": "compact,delete", "a.later.one": "7", "ttl": "soon"})
    eu, us = lake.streams()
    assert (eu.stream, us.stream, us.error) == ("eu", "us", None)
    assert "eu: the attributes of the stream are invalid" in str(eu.error)
    assert eu.to_json()["attributes"]["ttl"] == {"value": "soon", "from": "stream"}
    assert [info.topic for info in topic_infos(warehouse)] == ["eu/orders"]
    for call in (
        lambda: lake.create_topic("eu/other"),
        lambda: compact(warehouse, OracleEngine(warehouse.files), ORDERS, RunRequest()),
        lambda: lake.stream("eu").edit({"deleteretention": "5"}),
    ):
        with pytest.raises(InvalidSettingError):
            call()
    assert lake.topic("eu/orders").append([Record(b"k", b"2")]).records == 1
    report = lake.stream("eu").edit({"ttl": "0"}, unset=["compact", "a.later.one"])
    assert report.failed == ()
    assert lake.topic("eu/orders").state().settings.cleanup_policy == "compact,delete"
    assert lake.stream("eu").info().error is None
