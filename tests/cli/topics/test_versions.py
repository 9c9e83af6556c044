"""`lithify versions`, `undo` and `sweep`, and reading a kept version (C6, C7)."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

import lithify as lithify_package
from lithify.model.record import Record
from lithify.model.topic.edit import KeptVersion
from lithify.rules.lifecycle.sweeping import UNUSUAL_SEGMENTS
from lithify.service.change.undo import plan_undo
from lithify.service.look.status import kept_versions
from support.topics.memory_topic import ORDERS, MemoryTopic

pytestmark = pytest.mark.usefixtures("plain_rounds")


def produce(lithify, *lines):
    lithify("produce", "orders", "--format", "tsv", stdin="\n".join(lines))


@pytest.fixture
def orders(lithify):
    """Version 4 is a round over a=1 b=1 | a=2, version 5 adds c=1."""
    lithify("topic", "create", "orders")
    produce(lithify, "a\t1", "b\t1")
    produce(lithify, "a\t2")
    lithify("compact", "orders")
    produce(lithify, "c\t1")
    return lithify


def read(lithify, *more):
    return [(r["offset"], r["key"], r["value"]) for r in lithify(*more).lines]


def test_kept_versions_are_listed_and_read(orders, masked):
    assert masked(orders("versions", "orders").out) == (
        "VERSION  RECORDS  SIZE  CLOSED AT  BY  FILES REMAIN UNTIL\n      3  3  SIZE  TIMEZ  compact  TIMEZ\n"
    )
    assert orders("versions", "orders").err == "orders: 1 earlier version retained, at most 20 are; the newest is 5\n"
    version = orders("versions", "orders", "--json").json
    assert list(version) == [
        "topic",
        "version",
        "closed_ms",
        "closed_by",
        "verb",
        "records",
        "bytes",
        "view_records",
        "view_bytes",
        "files_stay_until_ms",
    ]
    assert version["closed_by"] == orders("history", "orders", "--json").json["run_id"]
    assert version["files_stay_until_ms"] == version["closed_ms"] + 86_400_000
    before = [(0, "a", "1"), (1, "b", "1"), (2, "a", "2")]
    assert read(orders, "consume", "orders", "--version", 3) == before
    assert read(orders, "consume", "orders", "--version", 3, "--from", 1, "--max", 1) == before[1:2]
    assert read(orders, "table", "orders", "--version", 3) == before[1:]
    assert read(orders, "consume", "orders", "--version", 5) == read(orders, "consume", "orders")


def test_a_version_that_is_not_kept_is_refused(orders):
    for verb in ("consume", "table"):
        for version in (1, 4, 99):
            assert orders.error(verb, "orders", "--version", version) == (
                f"orders: version {version} is not retained "
                "(retained: 3; the newest version is 5, which is the default)"
            )
    assert orders.error("consume", "orders", "--version", 3, "--follow") == (
        "version 3 does not change, so there is nothing to follow"
    )
    orders("topic", "create", "new")
    assert orders.error("table", "new", "--version", 7) == (
        "new: version 7 is not retained (retained: no earlier version; the newest version is 1, which is the default)"
    )
    assert orders("versions", "new").err == "new: 0 earlier versions retained, at most 20 are; the newest is 1\n"
    assert orders("versions", "new", "--json").out == ""


def test_undo_takes_the_last_round_back_and_leaves_what_came_since(orders, masked):
    """C7."""
    first = orders("status", "orders", "--json").json["logs"][0]
    assert masked(orders.error("undo", "orders")) == (
        "orders: nothing was undone (--yes undoes the round of TIME in 1 log, with 1 record that it had removed)"
    )
    assert len(read(orders, "consume", "orders")) == 3
    done = orders("undo", "orders", "--yes")
    assert (
        done.out
        == "PARTITION  START  CLEAN BELOW  SEGMENTS  RECORDS\n        0      0        3 → 0     -1 +1       +1\n"
    )
    assert done.err == (
        f"orders: the round {first['last_round_id']} was undone in 1 log, "
        "with 1 record that it had removed, version 6\n"
    )
    assert read(orders, "consume", "orders") == [(0, "a", "1"), (1, "b", "1"), (2, "a", "2"), (3, "c", "1")]
    log = orders("status", "orders", "--json").json["logs"][0]
    assert (log["first_dirty_offset"], log["last_round_id"], log["last_round_ms"]) == (0, None, None)
    assert orders.error("undo", "orders", "--yes") == (
        "orders: there is no round to undo (list its rounds with `lithify history`)"
    )


def test_what_undo_would_do_is_what_it_does(orders):
    """The line that asks for `--yes` is read off the same edit."""
    topic = lithify_package.open(str(orders.warehouse)).topic("orders")
    planned, done = plan_undo(topic.warehouse, topic.topic_name), topic.undo()
    assert (planned.logs, planned.undone_run_id) == (done.logs, done.undone_run_id)
    assert planned.version + 1 == done.version


def test_a_version_that_goes_while_they_are_listed_is_left_out():
    topic = MemoryTopic()
    topic.append([Record(b"k", b"1")])
    topic.compact()
    store = ListsOneTooMany(topic.warehouse.store)
    listed = kept_versions(replace(topic.warehouse, store=store), ORDERS)
    assert [version.version for version in listed] == [2]


class ListsOneTooMany:
    """A store that still lists a version that expired in another commit."""

    def __init__(self, store):
        self.load, self.load_version = store.load, store.load_version
        self._store = store

    def versions(self, name):
        return (*self._store.versions(name), KeptVersion(1, 0, "long ago"))


def test_undo_as_json_names_the_round(orders):
    run_id = orders("history", "orders", "--json").json["run_id"]
    undone = orders("undo", "orders", "--yes", "--json").json
    assert (undone["verb"], undone["undone_run_id"], undone["changed"]) == ("undo", run_id, True)


def test_undo_goes_no_further_back_than_versions_are_kept(orders):
    orders("topic", "alter", "orders", "--config", "versions.kept=1")
    orders("compact", "orders")
    orders("undo", "orders", "--yes")
    assert orders.error("undo", "orders", "--yes").startswith(
        "orders: the version before the last round is no longer retained"
    )


def test_sweep_lists_what_may_go_and_deletes_only_with_yes(lithify, masked):
    """C6: what no kept version names, and a stray file once it is old enough."""
    no_wait = ("--config", "versions.retention.ms=0", "--config", "versions.kept=1", "--config", "sweep.grace.ms=1h")
    lithify("topic", "create", "orders", *no_wait)
    produce(lithify, "a\t1")
    produce(lithify, "a\t2")
    lithify("compact", "orders")
    folder = next(lithify.warehouse.rglob("partition=0"))
    stray, theirs = folder / f"{7:020d}-failed-0.parquet", folder / "notes.parquet"
    for file in (stray, theirs):
        file.write_bytes(b"of a run that failed")
        os.utime(file, (time.time() - 3_601,) * 2)
    lithify("sweep", "--yes")
    assert not stray.exists()
    assert theirs.exists()
    for value in (3, 4):
        produce(lithify, f"a\t{value}")
        lithify("compact", "orders")
    listed = lithify("sweep", "orders")
    header, *rows = masked(listed.out).splitlines()
    assert header.split() == ["SIZE", "WHY", "SINCE", "FILE"]
    (first,) = (row for row in rows if row.endswith(".parquet"))  # others are in the version that is kept
    assert first.startswith("SIZE  replaced  TIMEZ  data/partition=0/00000000000000000001-")
    past = "1 version past versions.retention.ms, which --yes expires with the files that only it names"
    going = (
        f"{len(rows)} files of SIZE can be deleted; --yes deletes them; stored SIZE of data files, SIZE of metadata; "
    )
    assert masked(listed.err).startswith(f"orders: {past}; {going}")
    assert listed.err.endswith(
        " that no version names remain until versions.retention.ms or sweep.grace.ms has passed\n"
    )
    as_json = lithify("sweep", "orders", "--json").json
    figures = ["stored_bytes", "metadata_bytes", "waiting_files", "waiting_bytes"]
    assert list(as_json) == ["topic", "deleted", "files", "now_ms", *figures, "expired_versions", "bytes"]
    in_folder = [f for f in lithify.warehouse.rglob("*") if f.is_file() and f.is_relative_to(folder.parent.parent)]
    parts = [as_json[name] for name in ("stored_bytes", "metadata_bytes", "waiting_bytes", "bytes")]
    assert sum(parts) == sum(file.stat().st_size for file in in_folder if file != theirs)
    assert as_json["stored_bytes"] == lithify("topic", "info", "orders", "--json").json["space"]["stored_bytes"]
    assert list(as_json["files"][0]) == ["path", "size_bytes", "modified_ms", "named_until_ms"]
    assert as_json["bytes"] == sum(file["size_bytes"] for file in as_json["files"])
    swept = lithify("sweep", "orders", "--json", "--yes").json
    assert swept["deleted"]
    assert len(swept["expired_versions"]) == 1 and swept["expired_versions"] == as_json["expired_versions"]
    assert len(list(folder.glob("*.parquet"))) == 2, "theirs, and the segment of the newest version"
    assert lithify("versions", "orders", "--json").out == ""
    in_folder = [f for f in lithify.warehouse.rglob("*") if f.is_file() and f.is_relative_to(folder.parent.parent)]
    assert swept["stored_bytes"] == sum(file.stat().st_size for file in folder.glob("*.parquet") if file != theirs)
    assert swept["metadata_bytes"] < sum(file.stat().st_size for file in in_folder)
    assert lithify("sweep", "orders").err.startswith("orders: no file can be deleted; ")
    assert read(lithify, "consume", "orders") == [(3, "a", "4")]


def test_nothing_may_be_swept_before_its_time(orders):
    swept = orders("sweep", "orders", "--yes")
    assert swept.out == ""
    assert swept.err.startswith("orders: no file can be deleted; ")
    assert len(read(orders, "consume", "orders", "--version", 3)) == 3


def test_a_sweep_that_is_refused_expires_no_version(lithify):
    lithify("topic", "create", "orders", "--config", "versions.retention.ms=0", "--config", "min.compaction.lag.ms=0")
    for value in (1, 2, 3):
        produce(lithify, f"a\t{value}")
        lithify("compact", "orders")
    kept = lithify("versions", "orders", "--json").out
    folder = next(lithify.warehouse.rglob("partition=0"))
    for number in range(UNUSUAL_SEGMENTS):
        stray = folder / f"{number:020d}-failed-0.parquet"
        stray.write_bytes(b"of a run that failed" * 1_000)
        os.utime(stray, (time.time() - 86_400 * 30,) * 2)
    refused = lithify("sweep", "orders", "--yes", code=2)
    assert "--yes --allow-unusual" in refused.err
    assert kept and lithify("versions", "orders", "--json").out == kept
    swept = lithify("sweep", "orders", "--yes", "--allow-unusual", "--json").json
    assert swept["expired_versions"] and lithify("versions", "orders", "--json").out == ""
