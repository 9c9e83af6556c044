"""A service is paused on a topic of an earlier format while the commit of another makes it the newest (C6, C44).

What comes of it is what one of the two orders comes to, or the other service alone where the one is refused.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import lithify
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse
from lithify.service.change.cut import delete_records
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import Freezer, Verb, faulty, outcome
from support.topics.whole_logs import check_whole, contents

EARLIER = sorted(Path(__file__).parent.glob("v[12].zip"))
NAME = TopicName("default", "orders")
SAMPLE = 4
"""Of all pairs of services so many are tried for each format, at one call."""

UPGRADES: Mapping[str, Verb] = {
    "append": lambda w: append(w, NAME, [lithify.Record(b"order-1", b"later", 1_700_000_000_000, partition=0)]),
    "round": lambda w: compact(w, OracleEngine(w.files), NAME, RunRequest()),
    "undo": lambda w: undo(w, NAME),
    "delete-records": lambda w: delete_records(w, NAME, 0, 20),
}
VERBS: Mapping[str, Verb] = {**UPGRADES, "sweep": lambda w: sweep(w, NAME, delete=True)}


def seen(warehouse: Warehouse) -> object:
    state = check_whole(warehouse, NAME)
    return [(log.log_start_offset, log.first_dirty_offset) for log in state.logs], contents(warehouse, NAME)


def after(anew: Callable[[], Warehouse], *verbs: Verb) -> object:
    warehouse = anew()
    for verb in verbs:
        outcome(verb, warehouse)
    return seen(warehouse)


@pytest.mark.long
@pytest.mark.parametrize("archive", EARLIER, ids=lambda archive: archive.stem)
def test_it_is_as_one_order_or_the_other(archive: Path, as_stored: Callable[[Path], Path]) -> None:
    def anew() -> Warehouse:
        return lithify.open(str(as_stored(archive))).warehouse

    luck, tried = random.Random(archive.stem), 0
    for one, other in luck.sample(list(itertools.product(VERBS, UPGRADES)), SAMPLE):
        warehouse = anew()
        freezer = Freezer(luck.randint(2, 4), lambda other=other, warehouse=warehouse: outcome(VERBS[other], warehouse))
        refused = outcome(VERBS[one], faulty(warehouse, freezer))
        if not freezer.reached:
            continue
        tried += 1
        found = seen(warehouse)  # before another one is there
        right = [after(anew, VERBS[one], VERBS[other]), after(anew, VERBS[other], VERBS[one])]
        right += [] if refused is None else [after(anew, VERBS[other])]
        assert found in right, (one, freezer.calls, other, refused)
    assert tried >= SAMPLE // 2
