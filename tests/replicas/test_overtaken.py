"""Two copies into one replica, one of them slow: a newer one that was faster is no sign that the source went back."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.model.topic.state import TopicState
from lithify.service.replica.mirror import lag
from lithify.service.write.append import append
from support.faults.topics import NAME, records
from support.topics.replicas import SOURCE, Pair, a_pair, check_same


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
