"""Two copies into one replica, one of them slow: a newer one that was faster is no sign that the source went back,
and a replica that was deleted and created again meanwhile gets no files of the earlier one's folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from lithify.errors import UnknownTopicError
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.service.change.sweep import sweep
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import lag, mirror
from lithify.service.write.append import append
from support.faults.ports import Freezer, faulty
from support.faults.topics import NAME, records
from support.topics.replicas import SOURCE, Pair, a_pair, check_same, two_warehouses


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    pair = a_pair("memory", tmp_path)
    pair.mirrored()
    append(pair.source, NAME, records(range(60, 80), keys=7))
    return pair


def faster(pair: Pair) -> None:
    """What others do meanwhile."""
    append(pair.source, NAME, records(range(80, 90), keys=7))
    pair.mirror()


def test_one_that_is_overtaken_while_it_copies_c64(pair: Pair) -> None:
    done: list[int] = []

    def tell(done_bytes: int, _all_bytes: int) -> None:
        if not done:
            done.append(done_bytes)
            faster(pair)

    report = pair.mirror(tell=tell)
    assert done and not report.changed
    check_same(pair.source, pair.target)


@pytest.mark.parametrize("look", [lambda pair: pair.mirror(), lambda pair: lag(pair.source, pair.target, NAME, SOURCE)])
def test_one_that_is_overtaken_between_its_two_reads_c64(pair: Pair, look, monkeypatch: pytest.MonkeyPatch) -> None:
    load = type(pair.target.store).load
    done: list[bool] = []

    def slow(store: object, name: object) -> TopicState:
        if store is pair.target.store and not done:
            done.append(True)
            faster(pair)
        return load(store, name)

    monkeypatch.setattr(type(pair.target.store), "load", slow)
    found = look(pair)
    assert done and found.source_version == found.replica_version
    check_same(pair.source, pair.target)


@pytest.mark.parametrize("call", ["stored_files", "copy", "commit"])
def test_one_whose_replica_is_deleted_and_made_anew_meanwhile_c47_c64(call: str, tmp_path: Path) -> None:
    """Right before a call of a first copy; the first copy of the next one has only begun."""
    calls: list[str] = []
    for which in ("as it is", "frozen"):
        source, target = two_warehouses("iceberg", tmp_path / which)
        source.store.create_topic(NewTopic(NAME, "orders", settings_of({}), 1, source.clock.now_ms()))
        append(source, NAME, [record._replace(partition=0) for record in records(range(9), keys=3)])

        def others(source: Warehouse = source, target: Warehouse = target) -> None:
            target.store.drop_topic(NAME)
            mirror(source, target, NAME, MirrorRequest(SOURCE, stops=lambda: True))

        freezer = Freezer(calls.index(call) + 1 if calls else 0, others)
        mirror(source, faulty(target, freezer), NAME, MirrorRequest(SOURCE))
        calls = freezer.calls
        check_same(source, target)
        sweep(target, NAME, delete=True, allow_unusual=True)  # refused where a file is in another folder


def test_one_whose_replica_is_deleted_meanwhile_says_so(tmp_path: Path) -> None:
    source, target = two_warehouses("iceberg", tmp_path)
    source.store.create_topic(NewTopic(NAME, "orders", settings_of({}), 1, source.clock.now_ms()))
    append(source, NAME, [record._replace(partition=0) for record in records(range(9), keys=3)])

    def dropped(_done_bytes: int, _all_bytes: int) -> None:
        with suppress(UnknownTopicError):
            target.store.drop_topic(NAME)

    append(source, NAME, [record._replace(partition=0) for record in records(range(9, 18), keys=3)])
    with pytest.raises(UnknownTopicError, match="no such topic"):
        mirror(source, target, NAME, MirrorRequest(SOURCE, tell=dropped))
