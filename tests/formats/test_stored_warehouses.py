"""Every format version that was ever written is still read, appended to and compacted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import lithify
from formats.make_warehouse import reading
from formats.relocation import AvroParts
from formats.restating import restate
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.service.documents import put_source
from lithify.service.round.compact import RunRequest, compact
from lithify.store.iceberg.state.topic_codec import FORMAT_VERSION
from lithify.testing.oracle_engine import OracleEngine

HERE = Path(__file__).parent
ARCHIVES = sorted(HERE.glob("v*.zip"))


PRINTED = {
    '"mapr.%2Fdata%2Feu/clicks"': '"/data/eu:clicks"',
    "whole segments can go: ": "whole segments are past retention: ",
}
"""What was printed otherwise when the archives were made."""


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.stem)
def archive(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def lake(archive: Path, as_stored: Callable[[Path], Path]) -> lithify.Lake:
    return lithify.open(str(as_stored(archive)))


def test_there_is_a_warehouse_of_the_version_that_is_written_now():
    assert HERE / f"v{FORMAT_VERSION}.zip" in ARCHIVES


def test_everything_is_read_as_it_was_when_it_was_written(archive, lake):
    told = archive.with_suffix(".json").read_text("utf-8")
    for printed, now in PRINTED.items():
        told = told.replace(printed, now)
    expected = json.loads(told)
    found = json.loads(json.dumps(reading(lake, expected["now_ms"])))
    assert known(found, expected) == expected


def test_a_program_that_follows_the_page_states_what_lithify_states(tmp_path):
    """C48: sizes and checksums made from docs/reference/format.md alone are those that are stored."""
    warehouse = tmp_path / "warehouse"
    lake = lithify.open(str(warehouse))
    topic = lake.create_topic("orders", 2, like="pulsar")
    for batch in range(3):
        topic.append([lithify.Record(b"k%d" % n, b"%d" % batch, batch, partition=n % 2) for n in range(4)])
        compact(lake.warehouse, OracleEngine(lake.warehouse.files), topic.topic_name, RunRequest())
    put_source(topic.warehouse.store, topic.state(), CopiedTopic("Größe", ""))
    files = [path for path in warehouse.rglob("*") if path.suffix in (".avro", ".json")]
    meant = {path: stated(path) for path in files}
    restate(warehouse)
    assert {path: stated(path) for path in files} == meant
    assert "lithify.checksum" in str(meant)


def stated(path: Path) -> object:
    """What a file says, whatever its bytes are."""
    if path.suffix == ".json":
        return json.loads(path.read_text("utf-8"))
    avro = AvroParts.of(path.read_bytes())
    return avro.header, avro.blocks


def known(found, expected):
    """What was found, without the keys that there were not yet when it was written."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return {name: known(value, expected[name]) for name, value in found.items() if name in expected}
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return [known(*pair) for pair in zip(found, expected, strict=True)]
    return found


def test_it_goes_on_from_where_it_was(archive, lake):
    expected = json.loads(archive.with_suffix(".json").read_text("utf-8"))
    topic = lake.topic("orders")
    before = [log.log_end_offset for log in topic.status().logs]
    written = topic.append(
        [lithify.Record(b"order-1", b"new", partition=0), lithify.Record(b"order-1", b"new", partition=1)]
    )
    assert [r.start_offset for r in written.ranges] == before
    report = compact(
        lake.warehouse, OracleEngine(lake.warehouse.files), topic.topic_name, RunRequest(now_ms=expected["now_ms"])
    )
    assert report.changed and not report.failed
    assert sum(log.losers.expired_tombstone for log in report.logs) > 0
    values = {(row["partition"], row["key"]): row["value"] for row in topic.table().to_pylist()}
    assert values[0, b"order-1"] == values[1, b"order-1"] == b"new"
    assert len(topic.history()) == len(expected["topics"]["orders"]["history"]) + 1


def test_versions_from_before_the_last_rounds_can_be_read(archive, lake):
    store, topic = lake.warehouse.store, lake.topic("orders")
    kept = [store.load_version(topic.topic_name, v.version) for v in topic.versions()]
    assert len(kept) == 2
    space = topic.info().space
    assert (space.earlier_versions, space.earlier_versions_bytes, space.stored_bytes) == (2, None, None)
    for state in kept:
        segments = store.segments(state)
        assert sum(s.records for s in segments) == sum(log.volume.records for log in state.logs)
        assert lake.warehouse.files.missing([s.path for s in segments]) == ()


def test_a_round_of_every_topic_can_be_done_and_taken_back(archive, lake):
    expected = json.loads(archive.with_suffix(".json").read_text("utf-8"))
    for topic in lake.topics():
        before = [repr(record) for compacted in (False, True) for record in topic.reader(compacted=compacted)]
        engine = OracleEngine(lake.warehouse.files)
        report = compact(lake.warehouse, engine, topic.topic_name, RunRequest(now_ms=expected["now_ms"]))
        assert report.changed and not report.failed, topic.name
        topic.undo()
        after = [repr(record) for compacted in (False, True) for record in topic.reader(compacted=compacted)]
        assert after == before, topic.name


def test_a_stored_warehouse_stays_of_its_format_until_it_is_upgraded(archive, lake):
    """C66: what is done in it before, and the upgrade, leave it to earlier versions; topics are read as before."""
    expected = json.loads(archive.with_suffix(".json").read_text("utf-8"))
    lake.create_topic("another")
    lake.topic("another").append([lithify.Record(b"k", b"v", partition=0)])
    before = lake.info()
    assert (before.format, before.features, before.unreadable) == (3, (), {})
    formats = Counter({archive.stem[1:]: len(expected["topics"])}) + Counter({"3": 1})
    assert before.topics_by_format == formats
    done = lake.upgrade()
    assert (done.changed, done.format_before, done.format) == (True, 3, 4)
    again = lithify.open(lake.warehouse.store.where)
    assert (again.info().format, again.info().features) == (4, ("compacted-logs", "masks"))
    assert again.info().topics_by_format == before.topics_by_format
    assert not again.upgrade().changed
    again.delete_topic("another")
    assert len(list(again.topic("orders").reader())) == len(expected["topics"]["orders"]["records"])
