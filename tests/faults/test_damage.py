"""A damaged file of each kind, and which verbs meet it: those fail and name it, the others get through (C8, C31).

one topic     each kind of file, cut short ──► each verb: fails and names the file, or does what it does
several       the damaged log or topic fails alone in a run, the others are compacted
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faults.cases import CASES, a_round_of_kernels
from faults.history import TOPICS, several_topics
from faults.reads import READS
from lithify.api.lake import Lake
from lithify.columnar.files.access import local_path
from lithify.errors import DamagedError
from lithify.model.cursor import AtTime
from lithify.model.names import TopicName
from lithify.model.settings.rates import Rates
from lithify.ports.documents import DocumentKind
from lithify.ports.store import Warehouse
from lithify.service.change.alter import uncompact
from lithify.service.change.cut import truncate
from lithify.service.change.upgrade import upgrade
from lithify.service.documents import throttle
from lithify.service.read.fetch import open_log
from lithify.service.round.run import Run, run_rounds
from lithify.service.round.topic_run import TopicResult
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import KernelEngine
from support.faults.ports import Verb, outcome
from support.faults.topics import IN_PLACE, NAME, SIDE_BY_SIDE, iceberg_warehouse, prepared, records
from support.topics.whole_logs import check_whole

DAY_MS = 86_400_000
LOG = 0
"""The log whose files are damaged."""


def table_of(warehouse: Warehouse, name: TopicName) -> Any:
    return warehouse.store._tables.load(name)  # type: ignore[attr-defined]


def manifests(warehouse: Warehouse, name: TopicName) -> list[str]:
    table = table_of(warehouse, name)
    return [manifest.manifest_path for manifest in table.metadata.current_snapshot().manifests(table.io)]


def beside(warehouse: Warehouse, name: TopicName, pattern: str) -> list[str]:
    folder = Path(local_path(warehouse.store.load(name).location) or "") / "lithify"
    return [str(path) for path in sorted(folder.glob(pattern))]


Place = Callable[[Warehouse, TopicName], list[str]]

FILES: dict[str, Place] = {
    "data file": lambda w, name: [w.store.segments(w.store.load(name), [LOG])[-1].path],
    "manifest": manifests,
    "manifest list": lambda w, name: [table_of(w, name).metadata.current_snapshot().manifest_list],
    "metadata": lambda w, name: [table_of(w, name).metadata_location],
    "version record": lambda w, name: beside(w, name, "versions/*"),
    "report": lambda w, name: beside(w, name, "reports/*"),
    "rates": lambda w, name: beside(w, name, "rates.json"),
    "failures": lambda w, name: beside(w, name, "failures.json"),
    "format": lambda w, _: [w.store.document_path(None, DocumentKind.FORMAT)],
}


VERBS: dict[str, Verb] = {
    "append": lambda w: append(w, NAME, records(range(60, 70), keys=6)),
    "compact": a_round_of_kernels,
    "truncate": lambda w: truncate(w, NAME, LOG, 27),  # in the middle of a segment, which it rewrites
    "read from a time": lambda w: open_log(w, w.store.load(NAME), LOG, AtTime(1_058)),  # that is in the last segment
    **{
        name: CASES[name].verb
        for name in (
            *("retain", "delete-records", "alter", "undo"),
            *("expire", "sweep", "throttle", "quarantine release"),
        )
    },
    **{
        name: READS[name]
        for name in (
            *("read", "read compacted", "table", "table of one key", "status", "versions", "history"),
            *("status of all", "quarantine list", "group describe"),
            *("sought", "table at an offset", "table at a time"),
        )
    },
    "topic list": lambda w: w.store.topics(),
    "topic delete": lambda w: Lake(w).delete_topic("orders"),
}

OPENS_MANIFESTS = {
    "read from a time",
    "sought",
    "table at an offset",
    "table at a time",
    "compact",
    "read",
    "read compacted",
    "table",
    "table of one key",
    "status",
    "undo",
    "truncate",
    "delete-records",
    "alter",
    "retain",
    "sweep",
}
SHOWS_ALL_TOPICS = {"status of all", "quarantine list", "topic list"}

MEETS: dict[str, set[str]] = {
    "data file": {
        *("compact", "truncate", "read", "read compacted", "read from a time", "sought"),
        *("table", "table of one key", "table at a time"),
    },
    "manifest": OPENS_MANIFESTS,
    "manifest list": OPENS_MANIFESTS | {"append", "expire"},
    "metadata": VERBS.keys() - SHOWS_ALL_TOPICS,
    "version record": {"versions", "undo", "sweep"},
    "report": {"history", "undo"},
    "rates": set(),
    "failures": {"status", "quarantine release"},
    "format": {*VERBS},
}
"""Which verbs fail where such a file is damaged. What they change, they change by reading no more than they must."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A warehouse, and a copy of it to restart from."""

    folder: Path
    copy: Path

    def opened(self) -> Warehouse:
        """The warehouse as it was saved."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)
        return self.again()

    def again(self) -> Warehouse:
        """The same for another process, a day later: no id of before comes again."""
        warehouse = iceberg_warehouse(self.folder)
        assert isinstance(warehouse.clock, FakeClock)
        warehouse.clock.advance(DAY_MS)
        for _ in range(100):
            warehouse.clock.new_id()
        return warehouse


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("damaged")
    warehouse = prepared(iceberg_warehouse, folder / "warehouse", {**IN_PLACE, "retention.ms": 10 * DAY_MS})
    throttle(warehouse, NAME, Rates(3, 4))
    upgrade(warehouse)
    shutil.copytree(folder / "warehouse", folder / "copy")
    return Saved(folder / "warehouse", folder / "copy")


@contextmanager
def damaged(paths: Sequence[str]) -> Iterator[None]:
    """Cuts files short, for a time."""
    files = {path: path.read_bytes() for path in (Path(local_path(name) or name) for name in paths)}
    assert files
    for path, content in files.items():
        path.write_bytes(content[: len(content) // 2])
    yield
    for path, content in files.items():
        if path.exists():
            path.write_bytes(content)


@pytest.mark.parametrize("kind", FILES)
def test_the_verbs_that_meet_damage_name_it_and_the_others_do_not_mind(kind: str, saved: Saved) -> None:
    """C8: and what failed changed nothing."""
    for name, verb in VERBS.items():
        warehouse = saved.opened()
        before, paths = warehouse.store.load(NAME), FILES[kind](warehouse, NAME)
        with damaged(paths):
            error = outcome(verb, saved.again())
        assert (error is not None) == (name in MEETS[kind]), f"{name}: {error!r}"
        if error is not None:
            assert isinstance(error, DamagedError), f"{name}: {error!r}"
            assert error.hint
            assert kind == "metadata" or any(Path(path).name in error.message for path in paths), f"{name}: {error}"
            assert saved.again().store.load(NAME) == before, name


@pytest.mark.parametrize("kind", ["manifest", "manifest list"])
def test_a_group_is_described_also_where_a_topic_is_damaged(kind: str, saved: Saved) -> None:
    """C8, C59: each log that cannot be read is a line with an error, which names the file."""
    warehouse = saved.opened()
    paths = FILES[kind](warehouse, NAME)
    with damaged(paths):
        rows = READS["group describe"](saved.again())
    errors = [row.error for row in rows if row.error is not None]
    assert errors
    assert all(any(Path(path).name in error for path in paths) for error in errors)
    assert all(row.error is None for row in READS["group describe"](saved.again()))


def test_damaged_metadata_is_named(saved: Saved) -> None:
    """C8."""
    paths = FILES["metadata"](saved.opened(), NAME)
    with damaged(paths):
        error = outcome(lambda w: w.store.load(NAME), saved.again())
    assert error is not None
    assert Path(paths[0]).name in str(error)
    assert "\n" not in str(error)


def test_a_damaged_file_of_a_view_is_met_by_who_reads_the_view(tmp_path: Path) -> None:
    """C8, C33: no reader silently gets the backlog in its place, and plain readers go on."""
    warehouse = prepared(iceberg_warehouse, tmp_path, SIDE_BY_SIDE)
    paths = [segment.path for segment in warehouse.store.view(warehouse.store.load(NAME), [LOG])]
    before = VERBS["read"](warehouse)
    with damaged(paths):
        for name in ("read compacted", "table", "compact"):
            error = outcome(VERBS[name], warehouse)
            assert isinstance(error, DamagedError), name
            assert any(path in str(error) for path in paths)
        assert VERBS["read"](warehouse) == before
        uncompact(warehouse, NAME)
        assert outcome(VERBS["read compacted"], warehouse) is None, "without the view it is whole again (C35)"
        assert outcome(a_round_of_kernels, warehouse) is None
    check_whole(warehouse, NAME)


@pytest.mark.parametrize("kind", ["data file", "manifest", "manifest list", "metadata"])
@pytest.mark.parametrize("name", TOPICS, ids=str)
def test_in_a_run_damage_stops_its_own_log_or_topic(name: TopicName, kind: str, tmp_path: Path) -> None:
    """C31: the others get through in the same run, and it does as well once the file is whole."""
    warehouse = several_topics(iceberg_warehouse, tmp_path)
    run = Run(warehouse, KernelEngine())
    paths = FILES[kind](warehouse, name)
    with damaged(paths):
        results = run_rounds(run, dict.fromkeys(TOPICS))
    for other in TOPICS.keys() - {name}:
        result = results[other]
        assert isinstance(result, TopicResult)
        assert not result.errors
        assert all(log.changed for log in result.report.logs)
    mine = results[name]
    if kind == "data file":
        assert isinstance(mine, TopicResult)
        assert mine.errors.keys() == {LOG}
        assert paths[0] in str(mine.errors[LOG])
        assert [log.partition for log in mine.report.logs if log.changed] == [1], "its other log gets through"
    else:
        assert isinstance(mine, DamagedError)
    again = run_rounds(run, dict.fromkeys(TOPICS))
    assert all(isinstance(result, TopicResult) and not result.errors for result in again.values())
    for topic in TOPICS:
        check_whole(warehouse, topic)
