"""What a sweep may delete, and what it has to do before (C6, C45)."""

from __future__ import annotations

from lithify.model.settings.topic_settings import settings_of
from lithify.model.stored_file import Closing, FileKind, NamedFiles, StoredFile
from lithify.rules.lifecycle.sweeping import (
    RUNS_AT_ONCE,
    RUNS_REMEMBERED,
    SweepPlan,
    lost_from_listing,
    plan_sweep,
    remembered,
    run_of,
    still_abandoned,
)

GRACE_MS, RETENTION_MS = 60_000, 1_000
SETTINGS = settings_of({"sweep.grace.ms": GRACE_MS, "versions.retention.ms": RETENTION_MS})
NO_FILES = NamedFiles(frozenset())
NOW_MS = 10_000_000
OLD_MS = NOW_MS - GRACE_MS - 1


def segment(run: str, number: int = 0, modified_ms: int = OLD_MS, size: int = 100) -> StoredFile:
    return StoredFile(f"t/{number:020d}-{run}-0", size, modified_ms, FileKind.OUTPUT, run)


def metadata(name: str, modified_ms: int = OLD_MS) -> StoredFile:
    return StoredFile(f"t/metadata/{name}.avro", 10, modified_ms, FileKind.ATTEMPT)


def plan(*stored: StoredFile, named: NamedFiles = NO_FILES, **closings: Closing) -> SweepPlan:
    return plan_sweep(stored, named, {f"t/metadata/{name}.avro": at for name, at in closings.items()}, SETTINGS, NOW_MS)


def test_what_was_never_named_goes_after_the_grace_and_its_run_is_abandoned_first() -> None:
    old, young = segment("dead"), segment("busy", modified_ms=NOW_MS - GRACE_MS)
    found = plan(old, young)
    assert [f.path for f in found.unnamed] == [old.path]
    assert (found.replaced, found.abandon) == ((), ("dead",))


def test_a_run_with_recent_heartbeats_keeps_its_files_however_old_they_are() -> None:
    """C45: a round may take longer than sweep.grace.ms."""
    old = segment("long")
    sign = StoredFile("t/runs/long", 1, NOW_MS - GRACE_MS, FileKind.HEARTBEAT, "long")
    assert plan(old, sign).files == ()
    late = StoredFile("t/runs/long", 1, OLD_MS, FileKind.HEARTBEAT, "long")
    assert [f.path for f in plan(old, late).files] == [late.path, old.path]
    assert plan(old, late).abandon == ("long",)


def test_what_a_commit_replaced_goes_after_its_retention_and_no_run_is_abandoned() -> None:
    replaced, waiting = Closing(NOW_MS - RETENTION_MS), Closing(NOW_MS - RETENTION_MS + 1)
    found = plan(metadata("a"), metadata("b"), a=replaced, b=waiting)
    assert [f.path for f in found.replaced] == ["t/metadata/a.avro"]
    assert (found.unnamed, found.abandon) == ((), ())


def test_the_run_of_a_segment_that_a_version_named_is_not_abandoned() -> None:
    old = segment("done")
    swept = plan_sweep([old], NO_FILES, {old.path: Closing(NOW_MS - RETENTION_MS)}, SETTINGS, NOW_MS)
    assert (swept.replaced[0].path, swept.abandon) == (old.path, ())


def test_what_may_be_staged_for_a_commit_under_way_needs_the_version_to_move() -> None:
    seen_unnamed = Closing(NOW_MS - RETENTION_MS, was_named=False)
    assert [f.path for f in plan(metadata("a"), a=seen_unnamed).unnamed] == ["t/metadata/a.avro"]
    assert plan(metadata("a", modified_ms=NOW_MS - GRACE_MS), a=seen_unnamed).files == ()


def test_named_files_and_those_of_others_stay() -> None:
    named, foreign = segment("r"), StoredFile("t/notes.txt", 5, OLD_MS, FileKind.FOREIGN)
    assert plan(named, foreign, named=NamedFiles(frozenset({named.path}))).files == ()
    assert plan(named, named=NamedFiles(frozenset(), frozenset({named.path}))).files == ()


def test_more_runs_than_one_commit_takes_wait_for_the_next_sweep() -> None:
    found = plan(*(segment(f"r{n:05d}", n) for n in range(RUNS_AT_ONCE + 5)))
    assert len(found.abandon) == len(found.unnamed) == RUNS_AT_ONCE
    assert {run_of(f.path) for f in found.unnamed} == set(found.abandon)


def test_a_sweep_that_would_delete_most_of_what_is_stored_needs_confirmation() -> None:
    kept = segment("kept", size=1_999)
    lost = [segment("dead", n) for n in range(20)]
    named = NamedFiles(frozenset({kept.path}))
    assert "20 files" in plan(kept, *lost, named=named).unusual
    assert plan(kept, *lost[:19], named=named).unusual == ""
    assert plan(segment("kept", size=2_000), *lost, named=named).unusual == ""


def test_a_needed_file_that_the_folder_lacks_is_found() -> None:
    before, after = NamedFiles(frozenset("abc")), NamedFiles(frozenset("abd"))
    stored = [StoredFile("a", 1, 1)]
    assert lost_from_listing(before, after, stored) == "b"
    assert lost_from_listing(before, NamedFiles(frozenset("acd")), [*stored, StoredFile("c", 1, 1)]) is None


def test_runs_stay_abandoned_while_files_of_theirs_are_there() -> None:
    stored = [segment("a"), segment("b")]
    assert still_abandoned(("a", "b", "c"), stored, NamedFiles(frozenset({stored[1].path}))) == {"a"}


def test_the_runs_abandoned_last_are_remembered_and_all_that_have_files() -> None:
    before = tuple(f"run{number}" for number in range(RUNS_REMEMBERED))
    assert remembered((*before, "new"), {"run0"}) == (*before, "new")
    assert remembered((*before, "new"), {"run5"}) == (*before[1:], "new")
    assert remembered(before, set()) == before


def test_the_run_is_in_the_name_of_a_segment() -> None:
    assert run_of("s3://b/t/data/partition=0/00000000000000000017-run0001-3f-0.parquet") == "run0001"
    assert run_of("stray.parquet") == "stray.parquet"


def test_data_metadata_and_what_no_version_names_are_counted_apart():
    files = (segment("named", size=7), segment("stray", modified_ms=NOW_MS, size=100), metadata("m"))
    report = StoredFile("t/lithify/reports/named.json", 3, OLD_MS, FileKind.OUTPUT, "named")
    theirs = StoredFile("t/theirs.parquet", 1_000, OLD_MS, FileKind.FOREIGN)
    named = NamedFiles(frozenset({files[0].path, files[2].path, report.path, theirs.path}))
    plan = plan_sweep((*files, report, theirs), named, {}, SETTINGS, NOW_MS)
    assert (plan.stored_bytes, plan.metadata_bytes) == (7, 13)
    assert [file.path for file in plan.waiting] == [files[1].path]
