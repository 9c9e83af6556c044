"""Replicas in a stored warehouse of an earlier format: they go on until a record has really gone (C66).

earlier warehouse    copies ... copies   a round removes a record: asks for an upgrade ... upgraded   copies
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lithify
from lithify.errors import UnsupportedFormatError
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.replicas import MirrorReport
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import lag, mirror
from lithify.service.replica.promote import promote
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.oracle_engine import OracleEngine
from support.topics.replicas import check_same

pytestmark = pytest.mark.long
ARCHIVES = sorted(Path(__file__).parent.glob("v*.zip"))
JOURNAL = TopicName("default", "journal")
ASKS = r"journal: it needs the feature compacted-logs, but .* has format 3 without it \(run `lake.upgrade\(\)`"


class Sides:
    """A topic in a new warehouse, which is replicated into one of an earlier format."""

    def __init__(self, folder: Path, earlier: Path, config: dict[str, object]) -> None:
        self.topic = lithify.open(str(folder / "source")).create_topic("journal", config=config)
        self.source = self.topic.warehouse
        self.folder = earlier
        self.lake = lithify.open(str(self.folder))

    @property
    def target(self) -> Warehouse:
        return self.lake.warehouse

    def append(self, *keys: bytes) -> None:
        self.topic.append([lithify.Record(key, b"value", partition=0) for key in keys])

    def compact(self) -> None:
        assert not compact(self.source, OracleEngine(self.source.files), JOURNAL, RunRequest()).failed

    def mirror(self) -> MirrorReport:
        return mirror(self.source, self.target, JOURNAL, MirrorRequest("the source"))

    def mirrored(self) -> None:
        assert self.mirror().changed
        check_same(self.source, self.target, JOURNAL)

    @property
    def replica(self) -> TopicState:
        return self.target.store.load(JOURNAL)


@pytest.fixture(params=["in-place", "side-by-side"])
def config(request: pytest.FixtureRequest) -> dict[str, object]:
    return {"compaction.mode": request.param}


@pytest.fixture
def sides(tmp_path: Path, as_stored: Callable[[Path], Path], config: dict[str, object]) -> Sides:
    return Sides(tmp_path, as_stored(ARCHIVES[-1]), config)


def test_an_earlier_warehouse_is_replicated_into_until_a_record_has_gone_and_again_once_it_is_upgraded_c66(
    sides: Sides,
) -> None:
    sides.append(b"a", b"b")
    sides.mirrored()
    sides.topic.alter({"min.cleanable.dirty.ratio": 0.1, "delete.retention.ms": 1})
    sides.mirrored()  # not when a setting changes
    sides.compact()
    sides.mirrored()  # nor after a round that removed nothing
    sides.append(b"a")
    sides.mirrored()
    assert (sides.replica.format_version, sides.replica.features) == (3, ())
    last, files = sides.replica, sorted(sides.folder.rglob("*"))

    sides.compact()
    for _ in range(2):
        with pytest.raises(UnsupportedFormatError, match=ASKS):
            sides.mirror()
        sides.append(b"c")
    assert (sides.replica, sorted(sides.folder.rglob("*"))) == (last, files)
    assert [record.key for record in sides.lake.topic("journal").reader()] == [b"a", b"b", b"a"]
    assert not lag(sides.source, sides.target, JOURNAL, "the source").caught_up

    assert sides.lake.upgrade().changed
    sides.mirrored()
    assert (sides.replica.format_version, sides.replica.features) == (4, ("compacted-logs",))
    assert "4" in lithify.open(str(sides.folder)).info().topics_by_format
    sides.topic.undo()
    sides.mirrored()
    assert (sides.replica.format_version, sides.replica.features) == (3, ())


def test_a_first_copy_that_lacks_records_makes_nothing_in_an_earlier_warehouse_c66(sides: Sides) -> None:
    sides.append(b"a", b"a")
    sides.compact()
    files = sorted(sides.folder.rglob("*"))
    with pytest.raises(UnsupportedFormatError, match=ASKS):
        sides.mirror()
    assert sorted(sides.folder.rglob("*")) == files
    sides.lake.upgrade()
    sides.mirrored()
    promote(sides.target, JOURNAL)
    assert (sides.replica.format_version, sides.replica.features) == (3, ())


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.stem)
def test_a_topic_of_an_earlier_lithify_counts_as_one_that_lacks_records_after_a_round_c66(
    archive: Path, as_stored: Callable[[Path], Path], tmp_path: Path
) -> None:
    """It does not say. A topic without rounds is replicated into any warehouse."""
    stored = Sides(tmp_path, as_stored(archive), {})
    into = lithify.open(str(tmp_path / "into"))
    into.create_topic("own")
    (tmp_path / "into" / ".lithify" / "format.json").unlink()
    into = lithify.open(str(tmp_path / "into"))
    refused: set[str] = set()
    for topic in stored.lake.topics():
        try:
            mirror(stored.target, into.warehouse, topic.topic_name, MirrorRequest("the source"))
        except UnsupportedFormatError:
            refused.add(topic.name)
    with_rounds = {t.name for t in stored.lake.topics() if any(log.last_round_ms is not None for log in t.state().logs)}
    assert refused == with_rounds
    assert 0 < len(refused) < len(stored.lake.topics())
    assert into.upgrade().changed
    for topic in stored.lake.topics():
        mirror(stored.target, into.warehouse, topic.topic_name, MirrorRequest("the source"))
        check_same(stored.target, into.warehouse, topic.topic_name)
