"""Every port call of an append and of a round fails, in turn (C6, C31, C44).

For every N, until a run gets through untouched: the N-th call fails, loses its request or its
answer, or kills the process. Afterwards the log must be what it was before or what it is after,
what was acknowledged must be there, and the same work must go through when tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults.cases import STRIKES
from faults.history import prepared_again
from lithify.errors import LithifyError, UnknownOutcomeError
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import TopicState
from lithify.ports.store import CommitUnknownError, LogStore, Warehouse
from lithify.service.commit import ATTEMPTS
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import Kind
from support.faults.struck import (
    IN_PARTS,
    Prepared,
    check_struck_append,
    check_struck_round,
    prepared,
    prepared_to_mask,
    strikes,
)
from support.faults.topics import MAKERS, NAME, PARTITIONS, memory_warehouse, records
from support.topics.whole_logs import contents


def a_topic(make: Callable[[Path], Warehouse], folder: Path) -> Warehouse:
    return prepared(make, folder).warehouse


def to_mask(make: Callable[[Path], Warehouse], folder: Path) -> Warehouse:
    return prepared_to_mask(make, folder).warehouse


def a_topic_in_parts(make: Callable[[Path], Warehouse], folder: Path) -> Warehouse:
    """So much of which is dead that one segment of each log is rewritten after the other."""
    warehouse = prepared_to_mask(make, folder, segment_bytes=1_024).warehouse
    for numbers in (range(100, 200), range(200, 300), range(100, 140), range(200, 240)):
        append(warehouse, NAME, records(numbers, keys=1_000))
    return warehouse


def ready(warehouse: Warehouse) -> Prepared:
    return Prepared(warehouse, OracleEngine(warehouse.files))


@pytest.mark.parametrize(("store", "kind"), STRIKES, ids=lambda value: getattr(value, "name", value).lower())
def test_append_is_all_or_nothing(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6: a struck append is there whole or not at all, and an acknowledged one is there."""
    anew = prepared_again(MAKERS[store], a_topic, tmp_path)
    for injector in strikes(kind, store):
        check_struck_append(ready(anew()), injector)


@pytest.mark.parametrize(("store", "kind"), STRIKES, ids=lambda value: getattr(value, "name", value).lower())
def test_round_is_all_or_nothing(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6, C31: after a struck round the log is as before or as after, and a new round gets through."""
    anew = prepared_again(MAKERS[store], a_topic, tmp_path)
    for injector in strikes(kind, store):
        check_struck_round(ready(anew()), injector)


@pytest.mark.parametrize(("store", "kind"), STRIKES, ids=lambda value: getattr(value, "name", value).lower())
def test_masked_round_is_all_or_nothing(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6, C31: also where it masks segments instead of rewriting them."""
    anew = prepared_again(MAKERS[store], to_mask, tmp_path)
    for injector in strikes(kind, store):
        check_struck_round(ready(anew()), injector)
    warehouse = anew()
    compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest())
    segments = warehouse.store.segments(warehouse.store.load(NAME), range(PARTITIONS))
    assert any(segment.records < segment.records_in_file for segment in segments)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_rounds_in_parts_are_all_or_nothing(kind: Kind, tmp_path: Path) -> None:
    """C6, C31: each of them, and the same request again goes on."""
    anew = prepared_again(memory_warehouse, a_topic_in_parts, tmp_path)
    for injector in strikes(kind):
        check_struck_round(ready(anew()), injector, IN_PARTS)
    warehouse = anew()
    before = warehouse.store.load(NAME).version
    compact(warehouse, OracleEngine(warehouse.files), NAME, IN_PARTS)
    assert warehouse.store.load(NAME).version > before + PARTITIONS


class NoAnswers:
    """A store whose commits never answer; only that of the last attempt arrives."""

    def __init__(self, real: LogStore) -> None:
        self._real = real
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self, state: TopicState, edit: TopicEdit) -> TopicState:
        self.commits += 1
        if self.commits == ATTEMPTS:
            self._real.commit(state, edit)
        raise CommitUnknownError("injected: no answer")


def test_a_commit_without_any_answer_is_not_said_to_have_changed_nothing(tmp_path: Path) -> None:
    """C6: the service looks up what became of the last attempt, or the outcome is unknown."""
    warehouse = prepared(memory_warehouse, tmp_path).warehouse
    before = contents(warehouse, NAME)
    store: Any = NoAnswers(warehouse.store)
    try:
        append(Warehouse(store, warehouse.files, warehouse.clock), NAME, records(range(60, 70), keys=6))
    except LithifyError as error:
        assert isinstance(error, UnknownOutcomeError) or contents(warehouse, NAME) == before, error
    assert store.commits == ATTEMPTS
