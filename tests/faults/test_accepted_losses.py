"""Every port call of an ingest that accepts losses fails in turn: none is accepted without being stored (C6).

log   0 ── 30        40 ── 45
           copied    what the source still has
"""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.cases import STRIKES, an_ingest
from faults.history import prepared_again
from lithify.errors import LithifyError
from lithify.model.sources.copied_topic import Hole
from lithify.ports.store import Warehouse
from lithify.service.documents import source_of
from support.faults.ports import CrashError, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import IN_PLACE, MAKERS, NAME, PARTITIONS, picture, prepared
from support.topics.whole_logs import check_whole

LOST = range(30, 40)


def a_lossy_ingest(warehouse: Warehouse) -> object:
    return an_ingest(warehouse, start=LOST.stop, accepts_loss=True)


def holes(warehouse: Warehouse) -> set[Hole]:
    found = source_of(warehouse.store, warehouse.store.load(NAME))
    return set() if found is None else {hole for hole in found.holes if isinstance(hole, Hole)}


def passed(warehouse: Warehouse) -> set[Hole]:
    """The losses that the copy has gone past."""
    state = warehouse.store.load(NAME)
    return {Hole(p, LOST.start, LOST.stop) for p in range(PARTITIONS) if state.log(p).log_end_offset >= LOST.stop}


@pytest.mark.parametrize(("store", "kind"), STRIKES, ids=lambda value: getattr(value, "name", value).lower())
def test_no_loss_is_accepted_without_being_stored(store: str, kind: Kind, tmp_path: Path) -> None:
    anew = prepared_again(MAKERS[store], lambda make, folder: prepared(make, folder, IN_PLACE), tmp_path)
    untouched = anew()
    assert not passed(untouched)
    a_lossy_ingest(untouched)
    assert len(passed(untouched)) == PARTITIONS
    for injector in strikes(kind, store):
        warehouse = anew()
        try:
            a_lossy_ingest(faulty(warehouse, injector))
        except (LithifyError, CrashError):
            pass
        else:
            assert picture(warehouse) == picture(untouched)
        assert passed(warehouse) <= holes(warehouse), injector
        check_whole(warehouse, NAME)
        a_lossy_ingest(warehouse)
        assert (picture(warehouse), holes(warehouse)) == (picture(untouched), passed(untouched))
