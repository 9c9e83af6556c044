"""No service is forgotten: what the tests beside this one strike goes through all of them (C6).

every case, once, undisturbed ──► which functions of `service/` were called ──► all that have ports?
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType

import pytest

import lithify.service
from faults.cases import CASES
from faults.history import several_topics
from faults.keyed_appends import retried
from faults.reads import READS
from faults.test_accepted_losses import a_lossy_ingest
from faults.test_copied_ids import last_position, sealed_last
from faults.test_copied_positions import copied_positions
from faults.test_every_repair import a_repair
from faults.test_every_step import finished
from faults.test_every_step import prepared as a_cleaners_lake
from faults.test_every_topic import a_stream, deletion
from faults.test_live_topics import live_rounds
from faults.test_replicas import a_replica
from faults.test_resync import a_resync
from faults.test_several_topics import a_run
from lithify.api.lake import Lake
from lithify.service.look.known_failures import KnownFailures
from lithify.service.look.overview import StatusWatch
from lithify.service.round.compact import RunRequest, compact
from lithify.service.round.run import Run
from lithify.testing.memory_files import MemoryFiles
from support.faults.ports import Injector, Kind, faulty
from support.faults.struck import IN_PARTS, prepared_to_mask
from support.faults.struck import prepared as prepared_for_rounds
from support.faults.topics import IN_PLACE, NAME, SIDE_BY_SIDE, memory_warehouse, prepared

LOAD = 2
"""Which of the calls of a look at a catalog loads the first topic."""
PORTS = ("Warehouse", "Run", "LogStore", "Documents", "RoundPorts", "PulsarCluster", "GroupPositions", "Groups")
"""What is given to services that reach ports."""


def services() -> Iterator[FunctionType]:
    """Every public function of `service/` that reaches ports, and those of its classes that do."""
    for found in pkgutil.walk_packages(lithify.service.__path__, "lithify.service."):
        module = importlib.import_module(found.name)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(thing) and has_ports(thing):
                yield thing
            elif inspect.isclass(thing) and has_ports(thing) and thing is not Run:
                yield from (f for n, f in vars(thing).items() if inspect.isfunction(f) and not n.startswith("_"))


def has_ports(thing: Callable[..., object]) -> bool:
    return any(parameter.annotation in PORTS for parameter in inspect.signature(thing).parameters.values())


def called(action: Callable[[], object]) -> set[CodeType]:
    """The functions that an action went through."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen


def a_round_over_lost_files(folder: Path) -> None:
    """Of what `test_standing.py` and `test_damage.py` do, the part that only files that are gone lead to."""
    ready = prepared_for_rounds(memory_warehouse, folder)
    assert isinstance(ready.warehouse.files, MemoryFiles)
    ready.warehouse.files.data.clear()
    assert compact(ready.warehouse, ready.engine, NAME, RunRequest()).failed


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> set[CodeType]:
    """What the cases of all tests of faults go through."""
    folder = tmp_path_factory.mktemp("warehouses")
    found: set[CodeType] = called(lambda: a_run(several_topics(memory_warehouse, folder)))
    found |= called(lambda: prepared_for_rounds(memory_warehouse, folder))  # of an append and a round
    to_mask = prepared_to_mask(memory_warehouse, folder)
    found |= called(lambda: compact(to_mask.warehouse, to_mask.engine, NAME, RunRequest()))
    in_parts = prepared_to_mask(memory_warehouse, folder)
    found |= called(lambda: compact(in_parts.warehouse, in_parts.engine, NAME, IN_PARTS))
    found |= called(lambda: a_round_over_lost_files(folder))
    for case in CASES.values():
        warehouse = prepared(memory_warehouse, folder, case.config)
        found |= called(lambda case=case, warehouse=warehouse: case.verb(warehouse))
    found |= called(lambda: a_lossy_ingest(prepared(memory_warehouse, folder, IN_PLACE)))
    found |= called(lambda: a_repair(folder / "repairs"))
    found |= called(lambda: Lake(prepared(memory_warehouse, folder, SIDE_BY_SIDE)).delete_topic(str(NAME)))
    found |= called(lambda: finished(a_cleaners_lake(), Injector(0, Kind.FAILS)))
    found |= called(lambda: deletion(a_stream(folder)))
    warehouse = prepared(memory_warehouse, folder, SIDE_BY_SIDE)
    for read in READS.values():
        found |= called(lambda read=read: read(warehouse))
    unreadable = faulty(warehouse, Injector(LOAD, Kind.FAILS))
    found |= called(lambda: READS["status of all"](unreadable))
    # what the last overview found: it reaches no port
    found |= called(StatusWatch(warehouse).names) | called(lambda: StatusWatch(warehouse).state_at(NAME, None))
    found |= called(lambda: KnownFailures(warehouse).forget(str(NAME)))
    found |= called(lambda: KnownFailures(warehouse).keep([str(NAME)]))
    found |= called(live_rounds)
    found |= called(lambda: a_replica(folder))
    found |= called(a_resync)
    warehouse = memory_warehouse(folder)
    found |= called(lambda: (sealed_last(warehouse), last_position(warehouse)))
    found |= called(lambda: copied_positions(folder))
    found |= called(retried)
    return found


def test_every_service_is_struck(struck: set[CodeType]) -> None:
    forgotten = sorted(f"{f.__module__}.{f.__qualname__}" for f in services() if f.__code__ not in struck)
    assert not forgotten, f"add them to the cases in tests/faults: {forgotten}"


def test_every_module_of_the_services_is_struck(struck: set[CodeType]) -> None:
    folder = Path(lithify.service.__path__[0])
    modules = {str(path) for path in folder.rglob("*.py") if path.name != "__init__.py"}
    assert modules == {code.co_filename for code in struck} & modules


def test_a_service_that_nothing_strikes_is_found(struck: set[CodeType]) -> None:
    """The two tests above can fail."""
    names = {function.__name__ for function in services()}
    assert {"append", "compact", "run_rounds", "sweep", "undo", "verify"} <= names
    assert called(lambda: None).isdisjoint(function.__code__ for function in services())
