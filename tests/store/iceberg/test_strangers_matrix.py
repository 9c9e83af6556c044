"""Every change that a stranger can make to a topic's table, against every verb: refused by name, or survived (C8).

    a topic that has seen appends and a round ─► the change ─► each verb in turn

A verb that goes through gives what it would have given without the change; one that is refused says what
was changed and what to do, and leaves everything as it was. No other outcome is right.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table
from pyiceberg.table.update import SetLocationUpdate
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, StringType

from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.columnar.files.access import local_path
from lithify.errors import DamagedError, LithifyError, RefusedError, UnknownTopicError, WarehouseError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.store.iceberg import IcebergFiles, IcebergStore
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from store.table_properties import as_of_format
from support.engines.kernel import KernelEngine, compact_without_spark
from support.store.builders import Place

TABLE = ("default", "orders")
CONFIG = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}

Act = Callable[[Table, Catalog], object]


@dataclass(frozen=True)
class Change:
    """What a stranger does; what writing verbs and reading ones say to it, None where they go on."""

    act: Act
    writes: str | None = None
    reads: str | None = None
    kept: str | None = None
    """What reading a kept version says, where that is something of its own."""


def edited(edit: Callable[[dict[str, Any]], object]) -> Act:
    """Any other engine's commit: PyIceberg itself would call what some properties name."""

    def act(table: Table, catalog: Catalog) -> None:
        newest = Path(local_path(table.metadata_location) or "")
        metadata = json.loads(newest.read_text())
        edit(metadata)
        changed = newest.with_name("00099-5f0e.metadata.json")
        changed.write_text(json.dumps(metadata))
        with sqlite3.connect(newest.parents[3] / "catalog.db") as database:
            database.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{changed}",))
        database.close()

    return act


def properties(**changed: str) -> Act:
    dotted = {name.replace("__", "-").replace("_", "."): text for name, text in changed.items()}
    return edited(lambda metadata: metadata["properties"].update(dotted))


def without(name: str) -> Act:
    return edited(lambda metadata: metadata["properties"].pop(name))


def upgraded(metadata: dict[str, Any]) -> None:
    metadata |= {"format-version": 3, "next-row-id": 0}


def records_added(table: Table, _: Catalog) -> None:
    table.append(table.scan().to_arrow().slice(0, 1))


def rewritten(table: Table, _: Catalog) -> None:
    table.overwrite(table.scan().to_arrow(), AlwaysTrue())


def rolled_back(table: Table, _: Catalog) -> None:
    table.manage_snapshots().set_current_snapshot(ref_name=kept_tag(table)).commit()


def kept_tag(table: Table) -> str:
    return next(name for name in table.metadata.refs if re.fullmatch(r"lithify-\d+", name))


def moved(table: Table, _: Catalog) -> None:
    with table.transaction() as change:
        change._apply((SetLocationUpdate(location=f"{table.location()}-elsewhere"),))


def expired(table: Table, _: Catalog) -> None:
    named = {ref.snapshot_id for ref in table.metadata.refs.values()}
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id not in named:
            table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()


def untagged(table: Table, _: Catalog) -> None:
    table.manage_snapshots().remove_tag(kept_tag(table)).commit()


def of_its_own_refs(table: Table, _: Catalog) -> None:
    main = table.current_snapshot()
    assert main is not None
    table.manage_snapshots().create_tag(main.snapshot_id, "mine").commit()
    table.refresh()
    table.manage_snapshots().create_branch(main.snapshot_id, "work").commit()


def documents_gone(table: Table, _: Catalog) -> None:
    """As `remove_orphan_files` does it: it knows data and metadata files only."""
    folder = Path(local_path(table.location()) or "")
    for document in [*folder.glob("lithify/**/*.json")]:
        document.unlink()


OUR_COLUMN = r"the table's column \w+ is no longer as Lithify created it .*lake.repair"
MOVED = r"moved the table's main branch|the snapshot of main is not as the last commit left it"

LOCATION = "the location of its table was changed"
STATE = r"properties are not as the last commit left them|do not have the topic's format"

CHANGES: Mapping[str, Change] = {
    "a column added": Change(lambda t, _: t.update_schema().add_column("extra", StringType()).commit()),
    "a column renamed": Change(lambda t, _: t.update_schema().rename_column("value", "payload").commit(), OUR_COLUMN),
    "a column dropped": Change(
        lambda t, _: t.update_schema(allow_incompatible_changes=True).delete_column("headers").commit(), OUR_COLUMN
    ),
    "a column made optional": Change(lambda t, _: t.update_schema().make_column_optional("timestamp").commit()),
    "a column's type promoted": Change(
        lambda t, _: t.update_schema().update_column("value_size", LongType()).commit(), OUR_COLUMN
    ),
    "the key made required": Change(
        lambda t, _: t.update_schema(allow_incompatible_changes=True).update_column("key", required=True).commit(),
        OUR_COLUMN,
    ),
    "a partition field added": Change(
        lambda t, _: t.update_spec().add_field("key", BucketTransform(4), "bucket").commit(), "partition spec"
    ),
    "the partition field removed": Change(
        lambda t, _: t.update_spec().remove_field("partition").commit(), "partition spec"
    ),
    "another sort order": Change(lambda t, _: t.update_sort_order().asc("key", IdentityTransform()).commit()),
    "upgraded to format version 3": Change(edited(upgraded), "format version 3"),
    "files through another program": Change(properties(py__io__impl="subprocess.Popen")),
    "files from another server": Change(properties(s3_endpoint="http://127.0.0.1:9")),
    "places from another program": Change(
        properties(**{"write_py__location__provider_impl": "subprocess.Popen"}), "write.py-location-provider.impl"
    ),
    "metadata in another place": Change(
        properties(write_metadata_path="file:///dev/null/nowhere"), "write.metadata.path"
    ),
    "data in another place": Change(properties(write_data_path="file:///dev/null/nowhere"), "write.data.path"),
    "metadata compressed": Change(properties(**{"write_metadata_compression__codec": "gzip"})),
    "few earlier metadata files": Change(properties(**{"write_metadata_previous__versions__max": "1"})),
    "other Parquet files": Change(properties(**{"write_parquet_compression__codec": "gzip", "owner": "me"})),
    "retries": Change(properties(**{"commit_retry_num__retries": "4"}), "commit.retry.num-retries"),
    "the state of a log edited": Change(properties(lithify_log_0='{"end":1}'), STATE, STATE),
    "the state of a log removed": Change(without("lithify.log.1"), STATE, STATE),
    "the version edited": Change(properties(lithify_version="77"), MOVED, MOVED),
    "the settings removed": Change(without("lithify.settings"), STATE, STATE),
    "the format removed": Change(without("lithify.format-version"), STATE, STATE),
    "the location changed": Change(moved, LOCATION, LOCATION),
    "records added": Change(records_added, MOVED, MOVED),
    "files rewritten": Change(rewritten, MOVED, MOVED),
    "main rolled back": Change(rolled_back, MOVED, MOVED),
    "snapshots expired": Change(expired),
    "a tag of a kept version removed": Change(
        untagged, None, None, r"is not retained|is not as the last commit left it"
    ),
    "tags and branches of its own": Change(of_its_own_refs),
    "our documents removed as orphans": Change(
        documents_gone, None, None, r"\.json: the file is missing|\.json is needed, but is not in the topic"
    ),
}


@pytest.fixture
def topic(iceberg: Place) -> Topic:
    lake = Lake(Warehouse(iceberg.store, iceberg.files, iceberg.clock))
    topic = lake.create_topic("orders", 2, config=CONFIG)
    for value in (b"1", b"2"):
        topic.append([Record(b"a", value, partition=0), Record(b"b", value, partition=1)])
    compact_without_spark(topic)
    topic.append([Record(b"a", b"3", partition=0)])
    return topic


def opened_anew(topic: Topic) -> Topic:
    """As another process sees it."""
    FILE_CACHE.clear()
    store, warehouse = topic.warehouse.store, topic.warehouse
    assert isinstance(store, IcebergStore)
    again = IcebergStore(store.source, warehouse.clock.new_id)
    return Topic(
        Warehouse(again, IcebergFiles(store.source, warehouse.clock.new_id), warehouse.clock), topic.topic_name
    )


def a_round(topic: Topic) -> None:
    report = compact(topic.warehouse, KernelEngine(), topic.topic_name, RunRequest())
    for log in report.failed:
        raise WarehouseError(f"orders: {log.error}", hint="as it says")


def contents(topic: Topic, **reading: Any) -> list[tuple[int | None, bytes | None, bytes | None]]:
    return [(r.offset, r.key, r.value) for p in range(2) for r in topic.reader(p, **reading)]


def said(verb: Callable[[], object]) -> str | None:
    """How the verb was refused; None if it went through. Errors that are not ours are none for people."""
    try:
        verb()
    except LithifyError as error:
        assert "default/orders" in str(error) or "orders" in error.message, error
        assert error.hint, error
        return str(error)
    return None


def agrees(expected: str | None, told: str | None) -> bool:
    return told is None if expected is None else told is not None and re.search(expected, told) is not None


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_survived_or_refused_by_name(topic: Topic, foreign: Catalog, change: Change) -> None:
    before, kept = contents(topic), topic.versions()[0].version
    change.act(foreign.load_table(TABLE), foreign)
    topic = opened_anew(topic)

    reads = {
        "read": lambda: contents(topic) == before or pytest.fail("other records"),
        "status": topic.status,
        "plan": topic.plan,
        "versions": topic.versions,
        "sweep": topic.sweep,
        "retain": topic.retain,  # nothing is past retention
    }
    told = {verb: said(call) for verb, call in reads.items()}
    for verb in ("versions", "sweep") if change.kept else ():  # they look at kept versions as well
        told[verb] = None if told[verb] is not None and re.search(change.kept, told[verb]) else told[verb]
    assert [verb for verb, text in told.items() if not agrees(change.reads, text)] == [], told
    at_kept = said(lambda: contents(topic, version=kept))
    assert agrees(change.kept or change.reads, at_kept), at_kept

    writes = {
        "append": lambda: topic.append([Record(b"c", b"4", partition=1)]),
        "round": lambda: a_round(topic),
        "alter": lambda: topic.alter({"min.cleanable.dirty.ratio": "0.7"}),
        "delete-records": lambda: topic.delete_records(0, before=1),
    }
    told = {verb: said(call) for verb, call in writes.items()}
    assert [verb for verb, text in told.items() if not agrees(change.writes, text)] == [], told
    topic = opened_anew(topic)
    if change.reads is None:
        appended = [] if change.writes else [(2, b"c", b"4")]
        assert {k: v for _, k, v in contents(topic)} == {k: v for _, k, v in [*before, *appended]}


REPAIRED: Mapping[str, str] = {
    "upgraded to format version 3": "",
    "the state of a log removed": "",
    "main rolled back": "",
    "a tag of a kept version removed": "",
    "records added": r"of another program: append, 1 record added",
    "a column dropped": "",
    "the location changed": "",
}
"""Changes that a repair undoes, and what it notes of them."""


@pytest.mark.parametrize("name", REPAIRED)
def test_what_is_refused_is_undone_by_a_repair(topic: Topic, foreign: Catalog, name: str) -> None:
    """Appends that were refused meanwhile do not come back with it."""
    before, kept, state = contents(topic), topic.versions()[0].version, topic.state()
    at_kept = contents(topic, version=kept)
    CHANGES[name].act(foreign.load_table(TABLE), foreign)

    topic = opened_anew(topic)
    if CHANGES[name].writes is not None:
        assert said(lambda: topic.append([Record(b"c", b"refused", partition=p) for p in range(2)])) is not None
    report = Lake(topic.warehouse).repair("orders", repair=True)

    topic = opened_anew(topic)
    assert (report.way, report.complete) == ("register", True)
    assert any(re.search(REPAIRED[name], note) for note in (*report.notes, ""))
    assert (contents(topic), contents(topic, version=kept)) == (before, at_kept)
    assert topic.state() == state
    topic.append([Record(b"c", b"4", partition=1)])
    a_round(topic)


@pytest.mark.parametrize("act", [records_added, rolled_back])
def test_main_that_moved_is_noticed_by_the_version_alone(topic: Topic, foreign: Catalog, act: Act) -> None:
    """C8: a commit of before format 3 does not say which snapshot it left main at."""
    table = foreign.load_table(TABLE)
    as_of_format(table, 2)
    act(table, foreign)

    with pytest.raises(DamagedError, match="something other than Lithify moved the table's main branch: it is not at"):
        opened_anew(topic).state()


def test_properties_and_tags_of_strangers_stay(topic: Topic, foreign: Catalog) -> None:
    table, before = foreign.load_table(TABLE), len(contents(topic))
    with table.transaction() as change:
        change.set_properties({"comment": "mine"})
    of_its_own_refs(table, foreign)
    for n in range(3):
        topic.append([Record(b"%d" % n, b"4", partition=1)])
    a_round(topic)

    table.refresh()
    assert table.properties["comment"] == "mine"
    assert table.scan(snapshot_id=table.metadata.refs["mine"].snapshot_id).to_arrow().num_rows == before


def test_a_renamed_table_is_distinguished_from_the_topic_that_it_was(topic: Topic, foreign: Catalog) -> None:
    """Else the metadata of one topic could stand in for that of another."""
    before = contents(topic)
    foreign.rename_table(TABLE, ("default", "renamed"))

    with pytest.raises(
        DamagedError, match=r"belongs to the table default.orders .*`lake.repair\(...\)` for that topic to name"
    ):
        Lake(opened_anew(topic).warehouse).topic("renamed")
    with pytest.raises(UnknownTopicError):
        topic.append([Record(b"c", b"5", partition=1)])

    foreign.rename_table(("default", "renamed"), TABLE)
    assert contents(opened_anew(topic)) == before


@pytest.mark.parametrize("then", [None, records_added], ids=["renamed", "renamed and written to"])
def test_a_repair_names_a_renamed_topic_as_it_was(topic: Topic, foreign: Catalog, then: Act | None) -> None:
    """Two topics in one folder would delete each other's files."""
    before, state = contents(topic), topic.state()
    renamed = ("default", "renamed")
    foreign.rename_table(TABLE, renamed)
    if then is not None:
        then(foreign.load_table(renamed), foreign)
    lake = Lake(opened_anew(topic).warehouse)

    with pytest.raises(RefusedError, match=r"its table belongs to the topic orders.*`lake.repair\('orders'\)`"):
        lake.repair("renamed", repair=True)
    assert lake.repairable() == ("orders",)
    assert (foreign.table_exists(TABLE), foreign.table_exists(renamed)) == (False, True)

    report = lake.repair("orders", repair=True)

    assert (report.way, report.complete) == ("register", True)
    assert (foreign.table_exists(TABLE), foreign.table_exists(renamed)) == (True, False)
    topic = opened_anew(topic)
    assert (contents(topic), topic.state()) == (before, state)
    topic.append([Record(b"c", b"4", partition=1)])
    assert Lake(topic.warehouse).repair("orders").way == "nothing"


def test_a_topic_whose_kept_version_is_lost_is_not_recreated(topic: Topic, foreign: Catalog) -> None:
    """Commits that were made since would be undone, for a version that expires anyway."""
    kept = topic.versions()[0].version
    untagged(foreign.load_table(TABLE), foreign)
    topic = opened_anew(topic)
    topic.append([Record(b"c", b"4", partition=1)])
    a_round(topic)
    before, state = contents(topic), topic.state()
    assert re.search(rf"tag lithify-{kept} .*the newest version is whole", said(topic.sweep) or "")

    report = Lake(topic.warehouse).repair("orders", repair=True)

    assert (report.way, report.repaired, report.complete) == ("nothing", False, True)
    assert re.search(rf"tag lithify-{kept} .*cannot be read until it expires", report.notes[0])
    topic = opened_anew(topic)
    assert (contents(topic), topic.state()) == (before, state)


def test_a_lost_kept_version_expires_as_others_do(topic: Topic, foreign: Catalog, iceberg: Place) -> None:
    kept = topic.versions()[0].version
    untagged(foreign.load_table(TABLE), foreign)
    topic = opened_anew(topic)

    topic.alter({"versions.kept": 1})
    for value in (b"5", b"6"):
        iceberg.clock.advance(2 * 24 * 60 * 60 * 1000)
        topic.append([Record(b"a", value, partition=0)])
        a_round(topic)

    assert kept not in [version.version for version in topic.versions()]
    assert said(topic.sweep) is None
    assert Lake(topic.warehouse).repair("orders").notes == ()
