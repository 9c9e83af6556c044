"""Every port call of making and of deleting a topic fails, in turn: it is there whole, or it is not (C6)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.errors import LithifyError, TopicExistsError, UnknownTopicError
from lithify.model.formats.warehouse import NEWEST_FORMAT
from lithify.ports.store import Warehouse
from lithify.service.documents import warehouse_format
from lithify.service.write.append import append
from support.faults.ports import CrashError, Injector, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import MAKERS, NAME, PARTITIONS, records
from support.topics.whole_logs import check_whole, contents

CONFIG = {"cleanup.policy": "compact,delete", "retention.ms": 500}
DROPS = 1
"""Which call of the store does it; `tests/kills` ends them on the way."""


def made(lake: Lake) -> None:
    lake.create_topic("orders", PARTITIONS, config=CONFIG)


def is_there(warehouse: Warehouse) -> bool:
    """Whether there is a topic; then it is whole."""
    if NAME not in warehouse.store.topics():
        with pytest.raises(UnknownTopicError):
            warehouse.store.load(NAME)
        return False
    assert len(check_whole(warehouse, NAME).logs) == PARTITIONS
    return True


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("store", MAKERS)
def test_the_first_topic_is_made_or_not(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6: one that was made can be used, and one that was not can be made; its warehouse is a new one (C66)."""
    for injector in strikes(kind):
        warehouse = MAKERS[store](tmp_path / str(injector.at))
        with suppress(LithifyError, CrashError):
            made(Lake(faulty(warehouse, injector)))
        there, *before = is_there(warehouse), *injector.calls[: injector.at - 1]
        happens = injector.struck and kind in (Kind.LOSES_ANSWER, Kind.CRASHES_AFTER)
        assert there == ("create_topic" in (*before, injector.calls[-1] if happens else ""))
        with suppress(TopicExistsError):
            made(Lake(warehouse))
            assert not there
        assert is_there(warehouse)
        assert warehouse_format(warehouse.store) == NEWEST_FORMAT
        append(warehouse, NAME, records(range(4), keys=2))
        assert [len(log) for log in contents(warehouse, NAME)] == [2, 2]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("store", MAKERS)
def test_a_topic_is_deleted_or_not(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6: one that is there is there with all records; a name that is free again is a new topic."""
    warehouse = MAKERS[store](tmp_path)
    made(Lake(warehouse))
    append(warehouse, NAME, records(range(10), keys=4))
    before, identity = contents(warehouse, NAME), warehouse.store.load(NAME).identity
    with pytest.raises((LithifyError, CrashError), match="drop_topic"):
        Lake(faulty(warehouse, Injector(DROPS, kind))).delete_topic("orders")
    there = is_there(warehouse)
    assert there == (kind not in (Kind.LOSES_ANSWER, Kind.CRASHES_AFTER))
    if there:
        assert contents(warehouse, NAME) == before
        Lake(warehouse).delete_topic("orders")
    assert not is_there(warehouse)
    made(Lake(warehouse))
    assert warehouse.store.load(NAME).identity != identity
    assert contents(warehouse, NAME) == ((), ())


def a_stream(folder: Path) -> Warehouse:
    """With two topics."""
    warehouse = MAKERS["memory"](folder)
    Lake(warehouse).create_stream("eu", {"ttl": 5})
    for name in ("eu/a", "eu/b"):
        Lake(warehouse).create_topic(name).append(records(range(4), keys=2)[:1])
    return warehouse


def deletion(warehouse: Warehouse) -> object:
    return Lake(warehouse).stream("eu").delete(topics=True)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_a_stream_that_was_not_deleted_whole_is_deleted_again(kind: Kind, tmp_path: Path) -> None:
    """C56: its topics go one by one; what is left of them is whole."""
    for injector in strikes(kind):
        warehouse = a_stream(tmp_path)
        with suppress(LithifyError, CrashError):
            deletion(faulty(warehouse, injector))
        left = warehouse.store.streams()
        assert left in ((), ("eu",))
        for topic in warehouse.store.topics():
            check_whole(warehouse, topic)
        if left:
            deletion(warehouse)
        assert (warehouse.store.streams(), warehouse.store.topics()) == ((), ())
