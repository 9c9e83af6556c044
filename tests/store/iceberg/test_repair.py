"""A topic whose catalog entry or metadata is lost is recreated from the files that are there.

random history ─► lose something ─► repair ─► the latest values are the same, and the topic goes on
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.columnar.files.access import local_path
from lithify.errors import PolicyError, RefusedError, TopicExistsError, UnknownTopicError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import Mask, Segment
from lithify.model.sources.origin import KAFKA, CopyOf
from lithify.model.topic.edit import TopicEdit
from lithify.ports.store import Warehouse
from lithify.reports.warehouse import RepairReport
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.store.iceberg import open_store
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.state.lineage import certain_masks
from lithify.testing.fake_clock import FakeClock
from store.rest_catalog import a_rest_catalog
from support.builders import a_segment
from support.engines.kernel import compact_without_spark
from support.store.builders import NOW_MS
from support.store.catalogs import describe_catalog

PARTITIONS = 2
CLOCK = FakeClock(NOW_MS)

Lose = Callable[[Path], object]


def a_lake(folder: Path) -> Lake:
    """As a program of its own opens it."""
    FILE_CACHE.clear()
    return Lake(Warehouse(*open_store(str(folder), None, CLOCK.new_id), CLOCK))


def metadata_files(folder: Path) -> list[Path]:
    """The newest last."""
    return sorted(
        folder.glob("*/*/metadata/*.metadata.json"), key=lambda path: (path.name[:5], path.stat().st_mtime_ns)
    )


def no_catalog(folder: Path) -> None:
    (folder / "catalog.db").unlink()


def empty_catalog(folder: Path) -> None:
    (folder / "catalog.db").write_bytes(b"")


def no_entry(folder: Path) -> None:
    database = sqlite3.connect(folder / "catalog.db")
    with database:
        database.execute("DELETE FROM iceberg_tables")
    database.close()


def damaged(folder: Path) -> None:
    newest = metadata_files(folder)[-1]
    newest.write_bytes(newest.read_bytes()[:-200])


def missing(folder: Path) -> None:
    metadata_files(folder)[-1].unlink()


def few_left(folder: Path) -> None:
    for path in metadata_files(folder)[1:]:
        path.unlink()


def no_metadata(folder: Path) -> None:
    for path in folder.glob("*/*/metadata/*"):
        path.unlink()


def no_manifests(folder: Path) -> None:
    for path in folder.glob("*/*/metadata/*.avro"):
        path.unlink()


def catalog_and_newest(folder: Path) -> None:
    no_catalog(folder)
    damaged(folder)


def nothing_but_segments(folder: Path) -> None:
    no_catalog(folder)
    for topic in folder.glob("*/orders-*"):
        shutil.rmtree(topic / "metadata")
        shutil.rmtree(topic / "lithify", ignore_errors=True)


LOSSES = [
    no_catalog,
    no_entry,
    damaged,
    missing,
    few_left,
    no_metadata,
    no_manifests,
    catalog_and_newest,
    nothing_but_segments,
]

Step = tuple[str, int]
KEYS = [b"a", b"b", b"c", b"d"]
steps = st.lists(
    st.tuples(st.sampled_from(["append", "append", "delete", "round", "side"]), st.integers(0, 7)),
    min_size=1,
    max_size=9,
)


def latest(topic: Topic) -> dict[tuple[int, bytes | None], bytes | None]:
    """By partition and key; deletes as well, since a delete that is lost brings a value back."""
    return {(p, record.key): record.value for p in range(PARTITIONS) for record in topic.reader(p)}


def values(topic: Topic) -> dict[tuple[int, bytes | None], bytes]:
    return without_deletes(latest(topic))


def without_deletes(table: dict[tuple[int, bytes | None], bytes | None]) -> dict[tuple[int, bytes | None], bytes]:
    return {place: value for place, value in table.items() if value is not None}


def lived(topic: Topic, history: list[Step]) -> None:
    for n, (step, which) in enumerate(history):
        key, partition = KEYS[which % len(KEYS)], which % PARTITIONS
        match step:
            case "append":
                topic.append(
                    [Record(key, b"%d" % n, partition=partition), Record(b"z", b"%d" % n, partition=partition)]
                )
            case "delete":
                topic.append([Record(key, None, partition=partition)])
            case "side":  # an append that reaches both logs at once
                topic.append([Record(key, b"%d" % n, partition=p) for p in range(PARTITIONS)])
            case "round":
                compact_without_spark(topic)


def goes_on(folder: Path, expected: dict[tuple[int, bytes | None], bytes]) -> None:
    """Appends, rounds and sweeps as any topic, and stays whole."""
    topic = a_lake(folder).topic("orders")
    topic.append([Record(b"new", b"1", partition=0)])
    compact_without_spark(topic)
    topic.sweep(delete=True)
    topic = a_lake(folder).topic("orders")
    assert values(topic) == expected | {(0, b"new"): b"1"}
    assert a_lake(folder).repair("orders").way == "nothing"


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__)
@settings(max_examples=2, deadline=None)
@given(history=steps)
def test_nothing_is_missing_after_a_repair(lose: Lose, mode: str, history: list[Step]) -> None:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "warehouse"
        topic = a_lake(folder).create_topic("orders", PARTITIONS, config={"compaction.mode": mode})
        topic.append([Record(b"first", b"0", partition=p) for p in range(PARTITIONS)])
        lived(topic, history)
        state, before = topic.state(), latest(topic)
        expected = without_deletes(before)
        lose(folder)

        planned = a_lake(folder).repair("orders")
        assert not planned.repaired
        done = a_lake(folder).repair("orders", repair=True)

        assert (done.way, done.notes) == (planned.way, planned.notes)
        topic = a_lake(folder).topic("orders")
        if done.way == "register":
            assert (topic.state().identity, topic.state().version) == (state.identity, state.version)
        else:
            assert (done.way, topic.state().identity != state.identity) == ("rebuild", True)
        if done.complete or done.way == "rebuild":
            after = latest(topic)
            assert before.items() <= after.items()
            assert without_deletes(after) == expected
        assert [log.log_end_offset for log in topic.state().logs] == [log.log_end_offset for log in state.logs]
        goes_on(folder, expected)


def a_topic(folder: Path) -> Topic:
    topic = a_lake(folder).create_topic("orders", PARTITIONS)
    for value in (b"1", b"2"):
        topic.append([Record(b"a", value, partition=0), Record(b"b", value, partition=1)])
    return topic


def repaired(folder: Path) -> RepairReport:
    return a_lake(folder).repair("orders", repair=True)


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    a_topic(tmp_path / "w")
    no_catalog(tmp_path / "w")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    report = a_lake(tmp_path / "w").repair("orders")

    assert (report.way, report.repaired, report.version, report.complete) == ("register", False, 3, True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("lose", [no_catalog, empty_catalog], ids=lambda lose: lose.__name__)
def test_all_topics_of_a_lost_catalog_are_found(lose: Lose, tmp_path: Path) -> None:
    lake = a_lake(tmp_path / "w")
    for name in ("orders", "eu/customers", "persistent://a/b.c/d"):
        lake.create_topic(name).append([Record(b"k", b"v")])
    names = tuple(topic.name for topic in lake.topics())
    lose(tmp_path / "w")

    assert a_lake(tmp_path / "w").repairable() == names
    for name in names:
        a_lake(tmp_path / "w").repair(name, repair=True)
    assert tuple(topic.name for topic in a_lake(tmp_path / "w").topics()) == names


def test_without_manifests_settings_and_cuts_are_those_of_the_newest_metadata(tmp_path: Path) -> None:
    topic = a_lake(tmp_path / "w").create_topic("orders", 3, config={"segment.bytes": 2048})
    for n in range(3):
        topic.append([Record(b"%d" % n, b"1", partition=p) for p in range(2)])
    compact_without_spark(topic)
    topic.delete_records(0, before=2)
    before, state = latest(topic), topic.state()
    no_manifests(tmp_path / "w")

    report = repaired(tmp_path / "w")

    topic = a_lake(tmp_path / "w").topic("orders")
    assert (report.way, latest(topic)) == ("rebuild", before)
    assert topic.state().settings == state.settings
    assert [(log.log_start_offset, log.log_end_offset) for log in topic.state().logs] == [(2, 3), (0, 3), (0, 0)]


def test_a_rebuilt_copy_of_a_kafka_topic_is_one_still(tmp_path: Path) -> None:
    """C70."""
    topic = a_topic(tmp_path / "w")
    store = topic.warehouse.store
    state = store.commit(topic.state(), TopicEdit("run", NOW_MS, {}, origin=CopyOf(KAFKA, "there")))
    no_manifests(tmp_path / "w")

    assert repaired(tmp_path / "w").way == "rebuild"
    assert a_lake(tmp_path / "w").topic("orders").state().origin == state.origin == CopyOf(KAFKA, "there")


def test_a_rebuilt_replica_is_a_topic_of_its_own_and_its_report_says_so(tmp_path: Path) -> None:
    """C64: until it is deleted, and the next copy makes a replica of it again."""
    source, name = a_topic(tmp_path / "source"), TopicName("default", "orders")
    target = a_lake(tmp_path / "w").warehouse
    for _ in range(2):  # of which the second closes a version of the replica
        mirror(source.warehouse, target, name, MirrorRequest("the source"))
        compact_without_spark(source)
    no_metadata(tmp_path / "w")

    report = repaired(tmp_path / "w")

    told = [note for note in report.notes if "it was a replica of the topic in the source" in note]
    assert (report.way, len(told)) == ("rebuild", 1)
    lake = a_lake(tmp_path / "w")
    lake.topic("orders").append([Record(b"k", b"v")])
    with pytest.raises(PolicyError, match=r"no longer one .*if `repair` has recreated it"):
        mirror(source.warehouse, lake.warehouse, name, MirrorRequest("the source"))
    lake.delete_topic("orders")
    assert mirror(source.warehouse, lake.warehouse, name, MirrorRequest("the source")).changed


def test_a_folder_is_found_where_its_name_in_the_metadata_is_damaged(tmp_path: Path) -> None:
    expected = values(a_topic(tmp_path / "w"))
    newest = metadata_files(tmp_path / "w")[-1]
    pinned = b'"lithify.location":"file:///'
    newest.write_bytes(newest.read_bytes().replace(pinned, pinned + b"x"))

    repaired(tmp_path / "w")

    goes_on(tmp_path / "w", expected)


def test_of_two_equally_new_versions_a_person_says_which(tmp_path: Path) -> None:
    """Two committed at once: one of them lost, and left its metadata behind."""
    expected = values(a_topic(tmp_path / "w"))
    newest = metadata_files(tmp_path / "w")[-1]
    twin = newest.with_name(newest.name.replace(".metadata.json", "a.metadata.json"))
    shutil.copy(newest, twin)
    no_catalog(tmp_path / "w")

    with pytest.raises(RefusedError, match=r"2 metadata files are equally new.*metadata=FILE"):
        repaired(tmp_path / "w")

    a_lake(tmp_path / "w").repair("orders", repair=True, metadata=f"file://{newest}")
    goes_on(tmp_path / "w", expected)


@pytest.mark.parametrize("spelt", ["uri", "path", "relative", "link"])
def test_files_are_named_as_a_shell_completes_them(spelt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is a path of this machine, for the folder as for the metadata."""
    expected = values(a_topic(tmp_path / "w"))
    newest = metadata_files(tmp_path / "w")[-1]
    no_catalog(tmp_path / "w")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("w")
    below = newest.relative_to(tmp_path / "w")
    given = {"uri": f"file://{newest}", "path": f"{newest}", "relative": f"w/{below}", "link": f"link/{below}"}[spelt]
    folder = str(newest.parent.parent) if spelt == "link" else given.rpartition("/metadata/")[0]

    report = a_lake(tmp_path / "w").repair("orders", repair=True, folder=f"{folder}/", metadata=given)

    assert (report.way, report.complete, report.notes) == ("register", True, ())
    goes_on(tmp_path / "w", expected)


def test_a_second_loss_goes_by_the_topic_that_was_made_anew(tmp_path: Path) -> None:
    """Its metadata is numbered from 0 again, below that of the topic it replaced."""
    topic = a_topic(tmp_path / "w")
    damaged(tmp_path / "w")
    assert repaired(tmp_path / "w").way == "rebuild"
    topic = a_lake(tmp_path / "w").topic("orders")
    topic.append([Record(b"a", b"after", partition=0)])
    expected = values(topic)
    no_catalog(tmp_path / "w")

    report = repaired(tmp_path / "w")

    assert values(a_lake(tmp_path / "w").topic("orders")) == expected, report
    goes_on(tmp_path / "w", expected)


def test_a_deletion_that_broke_off_is_finished(tmp_path: Path) -> None:
    topic = a_topic(tmp_path / "w")
    location = topic.state().location
    folder = Path(local_path(location) or "")
    saved = tmp_path / "saved"
    shutil.copytree(folder, saved)
    a_lake(tmp_path / "w").delete_topic("orders")
    shutil.copytree(saved, folder)
    (folder / "lithify").mkdir(exist_ok=True)
    (folder / "lithify" / "deleted.json").write_text('{"topic": "x"}')

    report = repaired(tmp_path / "w")

    assert report.way == "finish-deletion"
    assert not folder.exists()
    with pytest.raises(UnknownTopicError):
        a_lake(tmp_path / "w").repair("orders")


def test_a_catalog_service_gets_its_topic_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its warehouse is a mere name, a person says where the files are."""
    with a_rest_catalog(tmp_path) as service:
        describe_catalog(monkeypatch, type="rest", uri=service.uri, warehouse="lake")
        lake = Lake(Warehouse(*open_store(None, "prod", CLOCK.new_id), CLOCK))
        topic = lake.create_topic("orders")
        topic.append([Record(b"a", b"1")])
        state = topic.state()
        service.catalog.drop_table(("default", "orders"))

        with pytest.raises(UnknownTopicError, match=r"give the folder of its files with folder=\.\.\."):
            lake.repair("orders")
        report = lake.repair("orders", repair=True, folder=state.location)

        assert report.way == "register"
        assert lake.topic("orders").state() == state


def test_a_refused_creation_leaves_no_second_folder(tmp_path):
    a_lake(tmp_path).create_topic("orders").append([Record(b"a", b"1")])
    with pytest.raises(TopicExistsError):
        a_lake(tmp_path).create_topic("orders")
    assert len(list(tmp_path.glob("default/*"))) == 1


def test_the_folder_of_a_creation_that_another_one_overtook_is_no_topic(tmp_path):
    """Repair took it for a second folder of the topic, and for a topic of its own once that was deleted."""
    lake = a_lake(tmp_path)
    lake.create_topic("orders").append([Record(b"a", b"1")])
    manifest_list = next(tmp_path.glob("default/*/metadata/snap-*.avro"))
    overtaken = tmp_path / "default" / "orders-0badcafe" / "metadata"
    overtaken.mkdir(parents=True)
    shutil.copy(manifest_list, overtaken)
    no_catalog(tmp_path)
    lake = a_lake(tmp_path)
    assert lake.repair("orders", True).complete
    assert [record.key for record in lake.topic("orders").reader()] == [b"a"]
    lake.delete_topic("orders")
    assert lake.repairable() == ()


def a_masked_topic(folder: Path) -> Topic:
    """The value of `k0` is masked, and its delete is gone from storage."""
    config = {"segment.bytes": 1024, "segment.max.dead.ratio": 0.3, "delete.retention.ms": 0}
    config |= {"versions.retention.ms": 0, "sweep.grace.ms": 60_000}
    topic = a_lake(folder).create_topic("orders", PARTITIONS, config=config)
    topic.append([Record(b"k%d" % n, b"%d" % n * 60, partition=0) for n in range(40)])
    topic.append([Record(b"k0", None, partition=0), Record(b"k1", b"new", partition=0)])
    for n in range(2):
        compact_without_spark(topic)
        CLOCK.advance(1000)
        topic.append([Record(b"z", b"%d" % n, partition=0), Record(b"z", b"%d" % n, partition=1)])
    CLOCK.advance(100_000)
    topic.sweep(delete=True)
    assert (0, b"k0") not in latest(topic)
    assert any(segment.mask is not None for segment in segments(topic))
    return topic


def segments(topic: Topic) -> tuple[Segment, ...]:
    return topic.warehouse.store.segments(topic.state())


@pytest.mark.parametrize("lose", [no_catalog, missing, no_metadata, no_manifests], ids=lambda lose: lose.__name__)
def test_what_masks_hide_stays_so_where_it_is_certain_that_they_count(lose: Lose, tmp_path: Path) -> None:
    expected = values(a_masked_topic(tmp_path))
    lose(tmp_path)
    done = repaired(tmp_path)
    assert not [note for note in done.notes if "this mask" in note]
    topic = a_lake(tmp_path).topic("orders")
    assert values(topic) == expected
    assert any(segment.mask is not None for segment in segments(topic))
    goes_on(tmp_path, expected)


def test_where_it_is_not_certain_what_masks_hid_is_back_and_the_plan_says_so(tmp_path: Path) -> None:
    """Nothing says that their round was committed, and else what it hid would be lost."""
    topic = a_masked_topic(tmp_path)
    expected, (mask,) = values(topic), [s.mask for s in segments(topic) if s.mask is not None]
    nothing_but_segments(tmp_path)
    done = repaired(tmp_path)
    (note,) = [note for note in done.notes if "this mask" in note]
    assert note.startswith(mask.path)
    assert "2 records of" in note
    assert values(a_lake(tmp_path).topic("orders")) == expected | {(0, b"k0"): b"0" * 60}


def test_a_damaged_mask_is_left_out(tmp_path: Path) -> None:
    topic = a_masked_topic(tmp_path)
    expected, (mask,) = values(topic), [s.mask for s in segments(topic) if s.mask is not None]
    file = Path(local_path(mask.path) or "")
    file.write_bytes(file.read_bytes()[:-9])
    no_metadata(tmp_path)
    assert f"{mask.path}: the file is damaged and omitted" in repaired(tmp_path).notes
    assert expected.items() <= values(a_lake(tmp_path).topic("orders")).items()


def test_masks_that_a_commit_may_have_let_go_are_not_certain() -> None:
    file = a_segment("/w/orders-1/data/partition=0/00000000000000000000-a-0-0.parquet")
    first, second = (
        replace(file, mask=Mask(f"/w/orders-1/data/partition=0/{'0' * 20}-{run}-0-0.deletes.parquet", 1, 1))
        for run in ("r1", "r2")
    )
    versions = [
        {"version": 2, "closed_by": "r1", "logs": [{"runs": ["a"]}]},
        {"version": 3, "closed_by": "b", "logs": [{"runs": ["a", "r1"]}]},
    ]

    def certain(*records: dict[str, object], masks: tuple[Segment, ...] = (first, second)) -> frozenset[str]:
        return certain_masks([*versions, *records], masks)

    def closes(run: str, *paths: str) -> dict[str, object]:
        return {"version": 4, "closed_by": run, "logs": [{"runs": ["a", "r1", "b"]}], "no_longer_named": paths}

    assert certain() == {first.id}
    assert certain(closes("r2", first.id)) == {first.id}  # whether or not it landed: the second hides as much
    assert certain(closes("c", first.id, file.path)) == {first.id}
    assert certain(closes("undo", first.id)) == frozenset()
    assert certain(closes("r2", first.id), masks=(first,)) == frozenset()
