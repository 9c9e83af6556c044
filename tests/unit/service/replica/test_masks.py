"""Replicas of topics whose rounds hide dead records: a mask is copied, and its segment not again (C63 to C67)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lithify.columnar.files.access import local_path
from lithify.errors import RunExpiredError, UnsupportedFormatError
from lithify.model.finding import FindingKind
from lithify.model.formats.features import COMPACTED_LOGS, MASKS
from lithify.model.formats.warehouse import NEWEST_FORMAT, WarehouseFormat
from lithify.model.record import Record
from lithify.model.replicas.file_names import origin
from lithify.model.segment import Mask, Segment, by_file
from lithify.model.settings.topic_settings import settings_of
from lithify.model.stored_file import FileKind
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.mirroring import TopicFiles
from lithify.rules.lifecycle.sweeping import run_of
from lithify.rules.proof.replica import file_findings
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.creation import create_warehouse
from lithify.service.documents import put_warehouse_format
from lithify.service.replica.copied_files import MirrorRequest, copy_files
from lithify.service.replica.mirror import lag, mirror
from lithify.service.replica.promote import promote
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import CrashError, faulty
from support.faults.topics import NAME, picture
from support.store.masks import dead_positions, with_mask
from support.topics.replicas import SOURCE, Pair, check_same, two_warehouses

pytestmark = pytest.mark.long

STORES = pytest.mark.parametrize("kind", ["memory", "iceberg"])
KEYS = 40


def put(warehouse: Warehouse, keys: range) -> None:
    """A new value of each key, in one partition."""
    now_ms = warehouse.clock.now_ms()
    append(warehouse, NAME, [Record(b"k%d" % key, b"at %d" % now_ms, now_ms, partition=0) for key in keys])


def a_round(warehouse: Warehouse) -> None:
    warehouse.clock.advance(1000)  # type: ignore[attr-defined]
    compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest()).unless_all_failed()


def a_pair(kind: str, folder: Path, **config: object) -> Pair:
    """A source with one large segment, of which a round has hidden four records, and then two more."""
    source, target = two_warehouses(kind, folder)
    create_warehouse(source.store)
    settings = settings_of(
        {
            "segment.bytes": 1024,
            "segment.max.dead.ratio": 0.5,
            "min.cleanable.dirty.ratio": 0,
            **{name.replace("_", "."): value for name, value in config.items()},
        }
    )
    source.store.create_topic(NewTopic(NAME, "orders", settings, 1, 0))
    pair = Pair(source, target)
    put(source, range(KEYS))
    return pair


def a_third(kind: str, folder: Path, pair: Pair) -> Warehouse:
    """Another warehouse, on the same clock."""
    third, _ = two_warehouses(kind, folder / "third")
    if kind == "memory":  # one source of ids, as tables of Iceberg have ids that are unique
        third.store._new_id = pair.clock.new_id  # type: ignore[attr-defined]
    return Warehouse(third.store, third.files, pair.clock)


def masked(warehouse: Warehouse) -> list[Segment]:
    """The segments with masks, of the log and its view."""
    state = warehouse.store.load(NAME)
    named = (*warehouse.store.segments(state), *warehouse.store.view(state))
    return [segment for segment in by_file(named).values() if segment.mask is not None]


def mask_in_place(pair: Pair, keys: range = range(4)) -> Segment:
    """New values of these keys, and a round: the only segment with a mask."""
    put(pair.source, keys)
    a_round(pair.source)
    (segment,) = masked(pair.source)
    return segment


@STORES
@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_a_new_mask_is_copied_and_its_segment_is_not_c63_c65(kind: str, mode: str, tmp_path: Path) -> None:
    pair = a_pair(kind, tmp_path, compaction_mode=mode)
    pair.mirrored()
    ids, paths = set(), set()
    for keys in (range(4), range(4, 6)):
        put(pair.source, keys)
        pair.mirrored()
        before = files(pair.source).keys()
        a_round(pair.source)
        (theirs,) = masked(pair.source)
        new = [segment for path, segment in files(pair.source).items() if path not in before]
        behind = lag(pair.source, pair.target, NAME, SOURCE)
        report = pair.mirror()
        check_same(pair.source, pair.target)
        (ours,) = masked(pair.target)
        assert theirs.mask is not None
        assert ours.mask is not None
        assert (origin(ours.id), ours.mask.dead, ours.records) == (origin(theirs.id), theirs.mask.dead, theirs.records)
        assert (report.files_copied, report.files_reused) == (len(new), 0)
        assert report.bytes_copied == behind.lag_bytes == sum(segment.id_bytes for segment in new)
        assert behind.lag_records == sum(segment.records for segment in new if segment.mask is None)
        ids.add(ours.id)
        paths.add(ours.path)
        if kind == "iceberg":
            assert dead_positions(ours) == dead_positions(theirs)
    assert (len(ids), len(paths)) == (2, 1)
    assert pair.target.store.load(NAME).features == (COMPACTED_LOGS, MASKS)
    assert verify_replica(pair.source, pair.target, NAME).findings == ()
    undo(pair.source, NAME)
    pair.mirrored()


@STORES
def test_a_replica_of_a_replica_has_its_masks_also_once_it_is_promoted_c63(kind: str, tmp_path: Path) -> None:
    pair = a_pair(kind, tmp_path)
    third = a_third(kind, tmp_path, pair)
    theirs = mask_in_place(pair)
    pair.mirrored()
    mirror(pair.target, third, NAME, MirrorRequest("the second"))
    check_same(pair.target, third)
    assert [origin(segment.id) for segment in masked(third)] == [origin(theirs.id)]
    seen = picture(third)
    promote(third, NAME)
    assert picture(third) == seen == picture(pair.source)
    put(third, range(6))
    a_round(third)
    (again,) = masked(third)
    assert again.mask is not None
    assert again.mask.dead == 6
    assert third.store.load(NAME).features == (MASKS,)


class Dies:
    """At a port: the process dies right after the first call of this name."""

    def __init__(self, name: str) -> None:
        self.name, self.dead = name, False

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        answer = action()
        if name == self.name:
            self.dead = True
            raise CrashError(name)
        return answer


def copy_that_dies(pair: Pair, call: str) -> None:
    with pytest.raises(CrashError):
        mirror(pair.source, faulty(pair.target, Dies(call)), NAME, MirrorRequest(SOURCE))  # type: ignore[arg-type]


@STORES
@pytest.mark.parametrize(("call", "masks"), [("copy_mask", 1), ("commit", 1), ("missing", 1), ("pieces", 0)])
def test_an_interrupted_copy_leaves_its_masks_to_the_next_c65(kind: str, call: str, masks: int, tmp_path: Path) -> None:
    pair = a_pair(kind, tmp_path)
    theirs = mask_in_place(pair)
    copy_that_dies(pair, call)
    left = copies_of(pair, theirs.id)
    assert len(left) == masks
    report = pair.mirror()
    if call == "commit":
        assert not report.changed  # it had landed
    else:
        assert report.files_copied + report.files_reused == len(files(pair.source))
        assert report.files_reused >= 1 + masks
    check_same(pair.source, pair.target)
    assert not masks or masked(pair.target)[0].id in left
    assert verify_replica(pair.source, pair.target, NAME).findings == ()


def test_a_mask_that_was_left_is_not_used_for_another_file_nor_if_it_is_damaged_c65(tmp_path: Path) -> None:
    """Of which the path is another one, as the first copy of the data file was damaged."""
    pair = a_pair("iceberg", tmp_path)
    theirs = mask_in_place(pair)
    copy_that_dies(pair, "missing")
    for broken in (theirs.path, theirs.id):
        (file,) = copies_of(pair, broken)
        damage(file)
        left = copies_of(pair, theirs.id)
        copy_that_dies(pair, "missing")
        assert len(copies_of(pair, theirs.id)) == len(left) + 1
        for path in (*left, file):
            Path(local_path(path) or "").unlink(missing_ok=True)
    assert pair.mirror().files_copied == 0
    check_same(pair.source, pair.target)
    assert verify_replica(pair.source, pair.target, NAME).findings == ()


def test_a_copy_whose_data_file_was_left_by_a_run_that_is_abandoned_does_not_commit_c45(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its mask, by which the segment is known, is of a run that is not."""
    pair = a_pair("memory", tmp_path, sweep_grace_ms=60_000)
    mask_in_place(pair)
    copy_that_dies(pair, "copy")
    copied = copy_files

    def then_frozen(*args: Any) -> Any:
        copies = copied(*args)
        pair.clock.advance(100_000_000)
        with pytest.raises(CrashError):  # the sweep abandons the runs, and dies before it deletes
            sweep(faulty(pair.target, Dies("commit")), NAME, delete=True, allow_unusual=True)  # type: ignore[arg-type]
        state = pair.target.store.load(NAME)
        assert {run_of(segment.path) for segment in copies.by_origin.values()} <= {*state.abandoned}
        return copies

    monkeypatch.setattr("lithify.service.replica.mirror.copy_files", then_frozen)
    monkeypatch.setattr("lithify.service.replica.mirror.STARTS", 1)
    with pytest.raises(RunExpiredError):
        pair.mirror()
    monkeypatch.undo()
    pair.mirrored()


@STORES
@pytest.mark.parametrize("how", ["gone", "other"])
@pytest.mark.parametrize("where", ["source", "target"])
def test_a_mask_that_is_gone_or_hides_others_is_named_c65(kind: str, how: str, where: str, tmp_path: Path) -> None:
    pair = a_pair(kind, tmp_path)
    mask_in_place(pair)
    pair.mirror()
    side = pair.source if where == "source" else pair.target
    (broken,) = masked(side)
    if kind == "memory":
        hidden = side.files.masks.pop(broken.id)
        if how == "other":
            side.files.masks[broken.id] = frozenset(offset + 1 for offset in hidden)
    elif how == "gone":
        Path(local_path(broken.id) or "").unlink()
    else:
        swap(broken)
    (finding,) = verify_replica(pair.source, pair.target, NAME).findings
    assert broken.id in finding.message
    assert finding.kind is (FindingKind.FILE_MISSING if how == "gone" else FindingKind.FILE_DAMAGED)
    alone = verify_replica(None, pair.target, NAME).findings
    assert bool(alone) == (where == "target" and (how == "gone" or kind == "iceberg"))  # its size is another one, too


def test_what_masks_one_side_has_and_the_other_has_not_is_named_c63() -> None:
    segment = Segment("/lake/orders-1/data/partition=0/00-a-0-0", 0, 0, 9, 9, 1, 1, 0, 0, 0, 0, 1, b"k", b"k")
    mask = Mask("/lake/orders-1/data/partition=0/00-b-0-0.deletes", 1, 2)
    with_one = replace(segment, records=7, mask=mask)
    for theirs, ours, kinds in (
        (with_one, segment, [(FindingKind.FILE_MISSING, mask.path), (FindingKind.WRONG_METADATA, segment.path)]),
        (segment, with_one, [(FindingKind.FILE_MISSING, segment.path), (FindingKind.WRONG_METADATA, mask.path)]),
        (with_one, with_one, []),
    ):
        found = file_findings(TopicFiles((theirs,)), TopicFiles((ours,)))
        assert [(finding.kind, finding.path) for finding in found] == kinds


def test_a_warehouse_without_the_feature_gets_no_replica_of_a_topic_with_masks_c66(tmp_path: Path) -> None:
    pair = a_pair("memory", tmp_path)
    pair.mirrored()
    put_warehouse_format(pair.target.store, WarehouseFormat(4, (COMPACTED_LOGS,)))
    mask_in_place(pair)
    stored, version = dict(pair.target.files.data), pair.target.store.load(NAME).version
    with pytest.raises(UnsupportedFormatError, match="it needs the feature masks") as refused:
        pair.mirror()
    assert "upgrade" in refused.value.hint
    assert (pair.target.files.data, pair.target.store.load(NAME).version) == (stored, version)
    put_warehouse_format(pair.target.store, NEWEST_FORMAT)
    pair.mirrored()


@STORES
def test_a_replica_that_compacts_by_itself_has_masks_of_its_own_c67(kind: str, tmp_path: Path) -> None:
    """For its view, of the files of its source's log; a copy leaves them, and a replica of it has them as well."""
    pair = a_pair(kind, tmp_path, cleanup_policy="delete", retention_ms=-1)
    third = a_third(kind, tmp_path, pair)
    put(pair.source, range(4))
    pair.mirror(compact=True)
    a_round(pair.target)
    (ours,) = masked(pair.target)
    assert ours.path in {segment.path for segment in pair.target.store.segments(pair.target.store.load(NAME))}
    put(pair.source, range(4, 6))
    pair.mirror(compact=True)
    check_same(pair.source, pair.target)
    assert masked(pair.target) == [ours]
    a_round(pair.target)
    (again,) = masked(pair.target)
    assert (again.path, again.id == ours.id) == (ours.path, False)
    assert pair.target.store.load(NAME).features[-1] == MASKS
    for side in (pair.source, pair.target):
        assert verify_replica(pair.source, pair.target, NAME).findings == ()
        mirror(pair.target, third, NAME, MirrorRequest("the second"))
        check_same(pair.target, third)
        assert verify_replica(pair.target, third, NAME).findings == ()
        put(pair.source, range(30, 31))
        pair.mirror(compact=side is pair.source)  # without: the view is dropped
    assert masked(pair.target) == []


def files(warehouse: Warehouse) -> dict[str, Segment]:
    state = warehouse.store.load(NAME)
    return by_file((*warehouse.store.segments(state), *warehouse.store.view(state)))


def copies_of(pair: Pair, path: str) -> list[str]:
    """The copies of a file that are in the replica's folder, named or not."""
    stored = pair.target.store.stored_files(pair.target.store.load(NAME))
    return [file.path for file in stored if file.kind is FileKind.OUTPUT and origin(file.path) == origin(path)]


def damage(path: str) -> None:
    file = Path(local_path(path) or "")
    content = bytearray(file.read_bytes())
    content[len(content) // 10] ^= 0xFF
    file.write_bytes(content)


def swap(segment: Segment) -> None:
    """Other positions in its mask, as many."""
    assert segment.mask is not None
    other = with_mask(segment, {position + 1 for position in dead_positions(segment)})
    assert other.mask is not None
    Path(local_path(other.id) or "").replace(local_path(segment.id) or "")
