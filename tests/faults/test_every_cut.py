"""Every port call of the verbs that cut, alter, undo and sweep fails, in turn (C6, C26, C31, C33, C35, C40, C43).

As with appends and rounds: after a call was struck the topic is as it was before or as it is after
the verb, whole, and the verb gets through when it is tried again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.cases import CASES, ON_DISK, STRIKES, Case
from faults.history import prepared_again
from lithify.errors import LithifyError, RefusedError
from lithify.ports.store import Warehouse
from support.faults.ports import CrashError, Injector, Kind, Verb, faulty
from support.faults.struck import strikes
from support.faults.topics import MAKERS, NAME, prepared
from support.topics.whole_logs import check_whole

STRUCK = [
    (name, *strike)
    for number, name in enumerate(CASES)
    for strike in STRIKES
    if strike != ON_DISK[number % len(ON_DISK)]
]
"""Every verb in memory by every kind, on disk by one in turn at every second call: `kills` kills all of them there."""


@pytest.mark.parametrize(("name", "store", "kind"), STRUCK, ids=lambda value: getattr(value, "name", value).lower())
def test_a_verb_is_all_or_nothing(name: str, store: str, kind: Kind, tmp_path: Path) -> None:
    """C6: struck anywhere, it happened or it did not, and nothing is in between."""
    case = CASES[name]
    anew = prepared_again(MAKERS[store], lambda make, folder: prepared(make, folder, case.config), tmp_path)
    untouched = anew()
    before = case.look(untouched)
    case.verb(untouched)
    after = case.look(untouched)
    assert (before == after) == (name == "sweep"), "the verb changes what is looked at, sweep does not"
    for injector in strikes(kind, store):
        warehouse = anew()
        acknowledged = _struck(case.verb, warehouse, injector)
        check_whole(warehouse, NAME)
        found = case.look(warehouse)
        assert found in ([after] if acknowledged else [before, after]), injector
        if found != after or case.again:
            _once_more(case, warehouse, done=found == after)
            check_whole(warehouse, NAME)
            assert case.look(warehouse) == after
        assert acknowledged or injector.struck


def _struck(verb: Verb, warehouse: Warehouse, injector: Injector) -> bool:
    """Whether the verb was acknowledged."""
    try:
        verb(faulty(warehouse, injector))
    except (LithifyError, CrashError):
        return False
    return True


def _once_more(case: Case, warehouse: Warehouse, *, done: bool) -> None:
    """Tries the verb again: what is done already changes nothing, or is not done twice."""
    try:
        case.verb(warehouse)
    except RefusedError:
        assert done
