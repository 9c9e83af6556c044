"""`verify` names what was damaged on purpose, in the log and in a view (C1, C3 to C5, C8, C20, C26, C33, C53).

The memory store and the oracle: quick enough to damage everything in turn. `tests/spark/test_verify.py`
damages real files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lithify.errors import UnknownVersionError, VersionSweptError
from lithify.model.finding import Finding, FindingKind
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LogState
from lithify.rules.compaction import planner
from lithify.rules.compaction.eligible.horizon import LIMITED_BY_END, Horizon
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.proof.verify import verify
from lithify.service.round import commit_round
from lithify.testing.memory_segments import segment_of
from lithify.testing.oracle_inspector import OracleInspector
from support.builders import a_log, with_id
from support.topics.memory_topic import ORDERS, MemoryTopic

IN_PLACE, VIEW, BACKLOG = "in-place", "view", "backlog"
Change = Callable[[list[Record]], list[Record]]


class Damaged:
    """A topic with a round over offsets 0 to 5 and two records since; `place` is what is damaged.

    Offsets 2 and 4 win with values, 5 is a tombstone; 6 and 7 are dirty.
    """

    def __init__(self, place: str) -> None:
        mode = "in-place" if place == IN_PLACE else "side-by-side"
        self.topic = MemoryTopic(compaction_mode=mode, delete_retention_ms=100, segment_bytes=100_000)
        self.place = place
        self.topic.append(a_log("a=1 b=1 a=2 c=1").records)
        self.topic.append(a_log("b=2 c=∅", first_offset=4).records)
        self.topic.compact()
        self.topic.append(a_log("a=3 d=1", first_offset=6).records)

    @property
    def segments(self) -> tuple[Segment, ...]:
        store = self.topic.warehouse.store
        return (store.view if self.place == VIEW else store.segments)(self.topic.state)

    def segment_with(self, offset: int) -> Segment:
        return next(s for s in self.segments if any(r.offset == offset for r in self.topic.files.data[s.path]))

    def rewritten(self, segment: Segment, change: Change) -> None:
        """The same file with other content, behind the metadata's back."""
        self.topic.files.data[segment.path] = tuple(change(list(self.topic.files.data[segment.path])))

    def replaced(self, segment: Segment, change: Change) -> None:
        """A commit that puts another file in the place of a segment: what a defect of ours would do."""
        records = tuple(change(list(self.topic.files.data[segment.path])))
        written = segment_of(f"{segment.path}-damaged", records)
        self.topic.files.data[written.path] = records
        files = {"add": (written,), "remove": (segment,)}
        if self.place == VIEW:
            files = {f"view_{what}": segments for what, segments in files.items()}
        self.edit(**files)

    def edit(self, change: Callable[[LogState], LogState] = lambda log: log, **files: object) -> None:
        state = self.topic.state
        edit = TopicEdit("damage", 0, {0: change(state.log(0))}, verb=Verb.APPEND, **files)  # type: ignore[arg-type]
        self.topic.warehouse.store.commit(state, edit)

    def found(self, against: int | None = None) -> list[Finding]:
        topic = self.topic
        return list(verify(topic.warehouse, OracleInspector(topic.files), ORDERS, against=against).findings)

    def about_records(self) -> set[tuple[FindingKind, int | None]]:
        return {(f.kind, f.offset) for f in self.found() if f.kind is not FindingKind.WRONG_METADATA}


def without(offset: int) -> Change:
    return lambda records: [r for r in records if r.offset != offset]


def with_value(offset: int, value: bytes) -> Change:
    return lambda records: [r._replace(value=value) if r.offset == offset else r for r in records]


def with_record(offset: int, key: bytes, value: bytes) -> Change:
    record = Record(key, value, 0, (), 0, offset)
    return lambda records: sorted([*records, record], key=lambda r: r.offset or 0)


@pytest.fixture(params=[IN_PLACE, VIEW, BACKLOG])
def damaged(request: pytest.FixtureRequest) -> Damaged:
    return Damaged(request.param)


@pytest.fixture(params=[IN_PLACE, VIEW])
def compacted(request: pytest.FixtureRequest) -> Damaged:
    return Damaged(request.param)


def test_nothing_is_found_where_nothing_is_wrong(damaged: Damaged) -> None:
    assert damaged.found() == []


def test_a_dropped_record_is_named(damaged: Damaged) -> None:
    """C1, C3."""
    damaged.replaced(damaged.segment_with(4), without(4))
    assert damaged.about_records() == {(FindingKind.RECORD_LOST, 4)}


def test_a_tombstone_that_went_early_is_named(damaged: Damaged) -> None:
    """C5."""
    damaged.replaced(damaged.segment_with(5), without(5))
    assert damaged.about_records() == {(FindingKind.TOMBSTONE_REMOVED_EARLY, 5)}


def a_copy(mode: str, *drawn: str, **config: object) -> MemoryTopic:
    """A topic with Pulsar's message ids, whose tombstones expire at once."""
    topic = MemoryTopic(message_ids="pulsar", compaction_mode=mode, delete_retention_ms=0, **config)
    for text in drawn:
        records = a_log(text, first_offset=topic.log().log_end_offset, timestamp=None).records
        topic.append([with_id(record) for record in records])
    return topic


@pytest.mark.parametrize("place", [IN_PLACE, VIEW])
def test_a_tombstone_that_went_although_an_entry_may_hide_what_it_deletes_is_named(place: str) -> None:
    """C53."""
    damaged = Damaged(place)
    damaged.topic = a_copy("in-place" if place == IN_PLACE else "side-by-side", "□=x a=1 a=∅ b=1")
    damaged.topic.compact()
    assert damaged.found() == []
    damaged.replaced(damaged.segment_with(2), without(2))
    assert damaged.about_records() == {(FindingKind.TOMBSTONE_REMOVED_EARLY, 2)}


@pytest.mark.parametrize("place", [IN_PLACE, VIEW])
def test_a_tombstone_that_went_although_a_chunk_has_its_key_is_named(place: str) -> None:
    """C53: those of other keys may go."""
    damaged = Damaged(place)
    damaged.topic = a_copy("in-place" if place == IN_PLACE else "side-by-side", "□a=x c=∅ a=∅ b=1")
    damaged.topic.compact()
    assert [r.offset for r in damaged.topic.reader(compacted=True)] == [0, 2, 3]
    assert damaged.found() == []
    damaged.replaced(damaged.segment_with(2), without(2))
    assert damaged.about_records() == {(FindingKind.TOMBSTONE_REMOVED_EARLY, 2)}


@pytest.mark.parametrize("place", [IN_PLACE, VIEW])
def test_a_tombstone_that_went_although_a_group_held_it_is_named(place: str) -> None:
    """C61: by the report, groups had not read it."""
    damaged = Damaged(place)
    mode = "in-place" if place == IN_PLACE else "side-by-side"
    holds = {"tombstone_hold_groups": "g", "tombstone_hold_max_ms": -1, "delete_retention_ms": 0}
    damaged.topic = MemoryTopic(compaction_mode=mode, **holds)
    damaged.topic.append(a_log("a=1 a=∅ b=1 b=2").records)
    damaged.topic.compact()
    assert damaged.found() == []
    damaged.replaced(damaged.segment_with(1), without(1))
    assert damaged.about_records() == {(FindingKind.TOMBSTONE_REMOVED_EARLY, 1)}


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_what_groups_have_read_may_go(mode: str) -> None:
    """C61, C62."""
    trims = {"backlog_trim_groups": "g"} if mode == "side-by-side" else {}
    holds = {"tombstone_hold_groups": "g", "tombstone_hold_max_ms": -1, "delete_retention_ms": 0}
    topic = MemoryTopic(compaction_mode=mode, **holds, **trims)
    topic.append(a_log("a=1 a=∅ b=1 b=2").records)
    topic.compact()
    topic.group_reads("g", 4)
    topic.append([Record(b"c", b"1", 1_000, partition=0)])
    topic.compact()
    assert [r.offset for r in topic.reader(compacted=True)] == [3, 4]
    assert topic.log().log_start_offset == (4 if trims else 0)
    for against in (v.version for v in topic.store.versions(ORDERS)):
        assert verify(topic.warehouse, OracleInspector(topic.files), ORDERS, against=against).findings == ()


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_an_entry_that_is_deleted_while_a_round_goes_on_still_held_its_tombstones(mode: str) -> None:
    """C53: nothing is wrong with a tombstone that stayed for it."""
    topic = a_copy(mode, "□=x", "a=1 a=∅ b=1")
    topic.compact(meanwhile=lambda: delete_records(topic.warehouse, ORDERS, 0, 1), times=1)
    assert [r.offset for r in topic.reader(compacted=True)] == [2, 3]
    expired: list[int] = []

    class Asked(OracleInspector):
        def inspect(self, segments, proofs, *given):
            expired.extend(proof.rules.tombstones_expire_below for proof in proofs if proof.rules is not None)
            return super().inspect(segments, proofs, *given)

    assert verify(topic.warehouse, Asked(topic.files), ORDERS).findings == ()
    assert expired == [0]


@pytest.mark.parametrize("by_earlier", [False, True], ids=["by this version", "by an earlier one"])
@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_an_entry_that_comes_while_a_round_goes_on(
    mode: str, by_earlier: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C53, C44: it holds the tombstone. Earlier versions committed such a round: the tombstone was gone by then."""
    if by_earlier:
        monkeypatch.setattr(commit_round, "late_append", lambda *_: None)
    topic = a_copy(mode, "a=∅!900 b=1", compaction_strategy="timestamp")
    late = [with_id(record) for record in a_log("□=x!500", first_offset=2).records]
    topic.compact(meanwhile=lambda: topic.append(late), times=1)
    assert [r.offset for r in topic.reader(compacted=True)] == ([1, 2] if by_earlier else [0, 1, 2])
    assert verify(topic.warehouse, OracleInspector(topic.files), ORDERS).findings == ()


LAG = {"min_compaction_lag_ms": 800, "min_compaction_lag_from": "commit"}


def append_often(topic: MemoryTopic, written: str, times: int) -> None:
    """Every 50 ms, so that the log keeps the times of its commits coarsely."""
    for _ in range(times):
        topic.append(a_log(written).records)
        topic.clock.advance(50)


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_appends_while_a_round_goes_on_make_what_it_covered_no_younger(mode: str) -> None:
    """C14: the log keeps the times of its commits coarsely, and later ones than when the round was planned."""
    topic = MemoryTopic(compaction_mode=mode, delete_retention_ms=0, **LAG)
    append_often(topic, "a=1 a=∅ b=1", 40)
    report = topic.compact(meanwhile=lambda: append_often(topic, "a=1 a=∅ b=1", 8), times=1)
    assert report.logs[0].losers.superseded and report.logs[0].losers.expired_tombstone
    assert verify(topic.warehouse, OracleInspector(topic.files), ORDERS).findings == ()


@pytest.mark.parametrize("late", [0, 1, 8])
@pytest.mark.parametrize(
    ("mode", "kind"), [("in-place", FindingKind.RECORD_LOST), ("side-by-side", FindingKind.RECORD_UNKNOWN)]
)
def test_a_round_that_took_what_was_committed_too_late_is_named(
    mode: str, kind: FindingKind, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C14: by the times that the log keeps of its commits, as far as they are as they were for the plan."""
    topic = MemoryTopic(compaction_mode=mode, now_ms=100_000, **LAG)
    append_often(topic, "a=1 b=1", 10)
    with monkeypatch.context() as patched:
        patched.setattr(planner, "compaction_horizon", lambda log, *_: Horizon(log.log_end_offset, LIMITED_BY_END))
        (report,) = topic.compact(meanwhile=lambda: append_often(topic, "a=1 b=1", late), times=1).logs
    assert (report.horizon, report.losers.superseded) == (20, 18)
    found = verify(topic.warehouse, OracleInspector(topic.files), ORDERS).findings
    assert {finding.kind for finding in found} == {kind}


def test_an_altered_record_is_named(damaged: Damaged) -> None:
    """C1. What is in the view is compared with the backlog as well, so it may be named for both."""
    damaged.replaced(damaged.segment_with(4), with_value(4, b"9"))
    assert damaged.about_records() == {(FindingKind.RECORD_ALTERED, 4)}


def test_a_duplicated_record_is_named(damaged: Damaged) -> None:
    """C4."""
    segment = damaged.segment_with(4)
    records = [r for r in damaged.topic.files.data[segment.path] if r.offset == 4]
    copy = segment_of(f"{segment.path}-copy", records)
    damaged.topic.files.data[copy.path] = tuple(records)
    damaged.edit(**{"view_add" if damaged.place == VIEW else "add": (copy,)})
    assert any("before" in f.message for f in damaged.found() if f.kind is FindingKind.WRONG_METADATA)


def test_a_superseded_record_that_is_back_is_named(compacted: Damaged) -> None:
    """C4."""
    compacted.replaced(compacted.segment_with(2), with_record(0, b"a", b"1"))
    assert compacted.about_records() == {(FindingKind.SUPERSEDED_KEPT, 0)}


def test_a_record_out_of_nowhere_is_named(compacted: Damaged) -> None:
    """C1: it was gone before the version that is compared with."""
    compacted.topic.append(a_log("z=1", first_offset=8).records)
    compacted.topic.compact()
    compacted.replaced(compacted.segment_with(4), with_record(1, b"b", b"1"))
    assert compacted.about_records() == {(FindingKind.RECORD_UNKNOWN, 1)}


def test_records_out_of_order_are_named(damaged: Damaged) -> None:
    segment = damaged.segment_with(4)
    damaged.rewritten(segment, lambda records: records[::-1])
    assert (FindingKind.OUT_OF_ORDER, segment.path) in {(f.kind, f.path) for f in damaged.found()}


def test_a_file_cut_short_is_named(damaged: Damaged) -> None:
    """C8. What is gone with it is not named one by one, nor what it had superseded."""
    segment = damaged.segment_with(4)
    damaged.rewritten(segment, lambda records: records[:-1])
    assert {(f.kind, f.path) for f in damaged.found()} == {(FindingKind.FILE_DAMAGED, segment.path)}


def test_a_missing_file_is_named(damaged: Damaged) -> None:
    """C8."""
    segment = damaged.segment_with(4)
    del damaged.topic.files.data[segment.path]
    assert {(f.kind, f.path) for f in damaged.found()} == {(FindingKind.FILE_MISSING, segment.path)}


METADATA: dict[str, Callable[[LogState], LogState]] = {
    "clean": lambda log: replace(log, clean=replace(log.clean, records=99)),
    "dirty": lambda log: replace(log, dirty=replace(log.dirty, size_bytes=1)),
    "last record": lambda log: replace(log, last_record=replace(log.last_record, offset=3)),  # type: ignore[type-var]
    "the time of the last record": lambda log: replace(log, last_record=replace(log.last_record, timestamp_ms=7)),  # type: ignore[type-var]
    "a step's tombstones": lambda log: replace(log, steps=tuple(replace(s, tombstones=0) for s in log.steps)),
    "a step above D": lambda log: replace(log, steps=tuple(replace(s, end_offset=7) for s in log.steps)),
    "D above E": lambda log: replace(log, first_dirty_offset=99),
    "deleted above S": lambda log: replace(log, deleted_below=1),
}


@pytest.mark.parametrize("what", METADATA)
def test_wrong_metadata_is_named(what: str, compacted: Damaged) -> None:
    """C8, C19, C27, C36."""
    compacted.edit(METADATA[what])
    assert FindingKind.WRONG_METADATA in {f.kind for f in compacted.found()}


@pytest.mark.parametrize("fact", ["volume", "first_offset", "last_record", "start_offset", "none"])
def test_wrong_metadata_of_a_view_is_named(fact: str) -> None:
    """C33, C36."""
    damaged = Damaged(VIEW)

    def change(log: LogState) -> LogState:
        assert log.view is not None
        wrong = {
            "volume": replace(log.view.volume, records=9),
            "first_offset": 1,
            "last_record": None,
            "start_offset": 9,
        }
        return replace(log, view=None if fact == "none" else replace(log.view, **{fact: wrong.get(fact)}))

    damaged.edit(change)
    assert FindingKind.WRONG_METADATA in {f.kind for f in damaged.found()}


def test_a_log_start_that_moved_for_no_reason_is_named() -> None:
    """C1: no record was deleted, retained or truncated."""
    damaged = Damaged(IN_PLACE)
    damaged.replaced(damaged.segment_with(4), without(4))
    damaged.edit(lambda log: replace(log, log_start_offset=5))
    assert (FindingKind.RECORD_LOST, 4) in damaged.about_records()


def test_damage_after_other_verbs_is_still_named(damaged: Damaged) -> None:
    """Rounds, truncations and undone rounds in between change nothing about it."""
    topic = damaged.topic
    first = topic.warehouse.store.versions(ORDERS)[0].version
    topic.append(a_log("e=1 f=1", first_offset=8).records)
    truncate(topic.warehouse, ORDERS, 0, 9)
    topic.compact()
    undo(topic.warehouse, ORDERS)
    delete_records(topic.warehouse, ORDERS, 0, 1)
    damaged.replaced(damaged.segment_with(4), without(4))
    assert {(f.kind, f.offset) for f in damaged.found(first) if f.offset is not None} == {(FindingKind.RECORD_LOST, 4)}


def test_a_version_that_is_not_kept_is_refused(damaged: Damaged) -> None:
    with pytest.raises(UnknownVersionError, match="version 99 is not retained"):
        damaged.found(against=99)


@pytest.mark.parametrize("newest", [True, False])
def test_a_version_that_is_swept_meanwhile_is_no_damage(newest):
    """C7: cleaners let versions go at their time, also while they are read, and also what was the newest one."""
    topic = MemoryTopic(versions_retention_ms=1_000)
    topic.append(a_log("a=1 b=1 a=2").records)
    if not newest:
        topic.compact()

    def meanwhile():
        if newest:
            topic.compact()
        let_go(topic)

    with pytest.raises(VersionSweptError, match="expired and was swept while it was verified"):
        verify(topic.warehouse, Overtaken(topic, meanwhile), ORDERS)
    assert verify(topic.warehouse, OracleInspector(topic.files), ORDERS).findings == ()


def let_go(topic):
    topic.clock.advance(2_000)
    assert expire_versions(topic.warehouse, ORDERS) is not None
    assert sweep(topic.warehouse, ORDERS, delete=True).files


class Overtaken(OracleInspector):
    """Others act before it begins."""

    def __init__(self, topic, meanwhile):
        super().__init__(topic.files)
        self._meanwhile = meanwhile

    def inspect(self, *given):
        self._meanwhile()
        return super().inspect(*given)


def test_nothing_is_believed_from_memory(monkeypatch):
    topic = MemoryTopic()
    topic.append(a_log("a=1").records)
    store, calls = topic.warehouse.store, []
    load = store.load
    monkeypatch.setattr(store, "clear_file_cache", lambda: calls.append("forget"), raising=False)
    monkeypatch.setattr(store, "load", lambda name: calls.append("load") or load(name))
    verify(topic.warehouse, OracleInspector(topic.files), ORDERS)
    assert calls[:2] == ["forget", "load"]
