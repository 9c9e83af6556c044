"""Exact copies of topics in another warehouse: what a copy makes, and what it refuses (C63, C64, C65)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import ConflictError, DamagedError, PolicyError, UnknownTopicError
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import NewTopic
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import lag, mirror
from lithify.service.replica.promote import promote
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.topics import IN_PLACE, NAME, SIDE_BY_SIDE, picture, records
from support.topics.replicas import SOURCE, a_pair, check_same, two_warehouses

pytestmark = pytest.mark.long

STORES = pytest.mark.parametrize("kind", ["memory", "iceberg"])


@STORES
@pytest.mark.parametrize("config", [IN_PLACE, SIDE_BY_SIDE], ids=["in place", "side by side"])
def test_a_copy_is_its_source_c63(kind, config, tmp_path):
    pair = a_pair(kind, tmp_path, config)
    behind = lag(pair.source, pair.target, NAME, SOURCE)
    assert (behind.replica_version, behind.caught_up) == (None, False)
    report = pair.mirror()
    check_same(pair.source, pair.target)
    assert (report.changed, report.replica_version, report.files_removed) == (True, report.source_version, 0)
    assert (behind.lag_bytes, report.files_reused) == (report.bytes_copied, 0)
    after = lag(pair.source, pair.target, NAME, SOURCE)
    assert (after.caught_up, after.lag_bytes, after.lag_records) == (True, 0, 0)
    assert not pair.mirror().changed


@STORES
@pytest.mark.parametrize("config", [IN_PLACE, SIDE_BY_SIDE], ids=["in place", "side by side"])
def test_whatever_is_done_to_the_source_reaches_the_replica_c63(kind, config, tmp_path):
    pair = a_pair(kind, tmp_path, {**config, "versions.retention.ms": 0})
    source, engine = pair.source, OracleEngine(pair.source.files)
    pair.mirrored()
    for done in (
        lambda: append(source, NAME, records(range(60, 80), keys=7)),
        lambda: compact(source, engine, NAME, RunRequest()),
        lambda: undo(source, NAME),
        lambda: alter(source, NAME, {"min.cleanable.dirty.ratio": 0.1}, partitions=4),
        lambda: delete_records(source, NAME, 0, 5),
        lambda: truncate(source, NAME, 1, 30),
        lambda: compact(source, engine, NAME, RunRequest()),
        lambda: sweep(source, NAME, delete=True),
        lambda: alter(source, NAME, {"cleanup.policy": "compact,delete"}),
        lambda: expire_versions(source, NAME),
    ):
        done()
        pair.mirrored()
    if config is SIDE_BY_SIDE:
        uncompact(source, NAME, lose_trimmed=True)
        pair.mirrored()


def test_a_file_is_copied_once_also_for_log_and_view_c65(tmp_path):
    pair = a_pair("memory", tmp_path, SIDE_BY_SIDE)
    source, store = pair.source, pair.source.store
    state = store.load(NAME)
    files = {segment.path: segment for segment in (*store.segments(state), *store.view(state))}
    report = pair.mirror()
    assert (report.files_copied, report.bytes_copied) == (len(files), sum(s.size_bytes for s in files.values()))
    append(source, NAME, records(range(60, 64), keys=2))
    assert pair.mirror().files_copied == 2
    alter(source, NAME, {"delete.retention.ms": 7})
    report = pair.mirror()
    assert (report.changed, report.files_copied) == (True, 0)


def test_copies_of_copies_have_the_origin_of_the_first_c65(tmp_path):
    first, second = two_warehouses("iceberg", tmp_path / "two")
    pair = a_pair("iceberg", tmp_path)
    pair.mirrored()
    mirror(pair.target, first, NAME, MirrorRequest("the second"))
    mirror(first, second, NAME, MirrorRequest("the third"))
    assert picture(second) == picture(pair.source)
    says = second.store.load(NAME).replica
    assert says is not None
    assert says.chain == (pair.target.store.load(NAME).identity, pair.source.store.load(NAME).identity)
    append(pair.source, NAME, records(range(60, 70), keys=7))
    for source, target in ((pair.source, pair.target), (pair.target, first), (first, second)):
        assert mirror(source, target, NAME, MirrorRequest(SOURCE)).files_copied == 2
    assert picture(second) == picture(pair.source)
    names = [segment.path.rpartition("/")[2] for segment in second.store.segments(second.store.load(NAME))]
    assert {name.count("-of-") for name in names} == {1}


@STORES
def test_a_replica_refuses_what_changes_topics_c64(kind, tmp_path):
    pair = a_pair(kind, tmp_path, SIDE_BY_SIDE)
    pair.mirrored()
    target, engine = pair.target, OracleEngine(pair.target.files)
    version = target.store.load(NAME).version
    for refused in (
        lambda: append(target, NAME, records(range(3), keys=3)),
        lambda: alter(target, NAME, {"retention.ms": 5}),
        lambda: retain(target, NAME),
        lambda: delete_records(target, NAME, 0, 5),
        lambda: truncate(target, NAME, 0, 5),
        lambda: undo(target, NAME),
        lambda: uncompact(target, NAME),
        lambda: compact(target, engine, NAME, RunRequest()),
    ):
        with pytest.raises(PolicyError, match="it is a replica of the topic in the warehouse of the source") as error:
            refused()
        assert "lake.replicas().promote('orders')" in error.value.hint
    assert target.store.load(NAME).version == version


@STORES
def test_sweeps_and_expiry_go_on_at_a_replica_c64(kind, tmp_path):
    pair = a_pair(kind, tmp_path, {"versions.retention.ms": 1000, "sweep.grace.ms": 60_000})
    pair.mirrored()
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    pair.mirrored()
    pair.clock.advance(100_000)
    assert expire_versions(pair.target, NAME) is not None
    assert sweep(pair.target, NAME, delete=True).files
    check_same(pair.source, pair.target)
    append(pair.source, NAME, records(range(60, 70), keys=7))
    pair.mirrored()


@STORES
def test_a_promoted_replica_is_a_topic_c64(kind, tmp_path):
    pair = a_pair(kind, tmp_path)
    pair.mirrored()
    seen = picture(pair.target)
    report = promote(pair.target, NAME)
    assert (report.source, report.source_version) == (SOURCE, pair.source.store.load(NAME).version)
    assert pair.target.store.load(NAME).replica is None
    assert picture(pair.target) == seen
    end = pair.target.store.load(NAME).log(0).log_end_offset
    assert append(pair.target, NAME, records(range(0, 1), keys=1)).ranges[0].start_offset == end
    truncate(pair.target, NAME, 0, end - 1, below_compacted=True)
    compact(pair.target, OracleEngine(pair.target.files), NAME, RunRequest())
    with pytest.raises(PolicyError, match="is not a replica"):
        pair.mirror()
    with pytest.raises(PolicyError, match="is not a replica"):
        promote(pair.target, NAME)


@STORES
def test_what_another_program_wrote_to_a_replica_is_not_overwritten_c64(kind, tmp_path, monkeypatch):
    """An earlier Lithify leaves what says that the topic is a replica as it was."""
    pair = a_pair(kind, tmp_path)
    pair.mirrored()
    state = pair.target.store.load(NAME)
    with monkeypatch.context() as earlier:
        earlier.setattr(TopicEdit, "replica_after", lambda _edit, before, _base, _version: before)
        log = replace(state.log(0), log_end_offset=99)
        written = pair.target.store.commit(state, TopicEdit("stranger", pair.clock.now_ms(), {0: log}))
    for _ in range(2):
        with pytest.raises(ConflictError, match=f"has written to the replica after its version {state.version}"):
            pair.mirror()
        pair.clock.advance(30 * 86_400_000)
        sweep(pair.target, NAME, delete=True)  # a commit of ours does not hide it
        expire_versions(pair.target, NAME)
    assert pair.target.store.load(NAME).log(0) == written.log(0)
    promote(pair.target, NAME)
    assert pair.target.store.load(NAME).log(0).log_end_offset == 99


def test_refusals_say_what_is_there_c64(tmp_path):
    pair = a_pair("memory", tmp_path)
    with pytest.raises(PolicyError, match="the target is the topic itself"):
        mirror(pair.source, pair.source, NAME, MirrorRequest(SOURCE))
    pair.target.store.create_topic(NewTopic(NAME, "orders", pair.source.store.load(NAME).settings, 1, 0))
    with pytest.raises(PolicyError, match="has a topic of that name that is not a replica"):
        pair.mirror()
    pair.target.store.drop_topic(NAME)
    pair.mirrored()
    with pytest.raises(PolicyError, match="the target is the topic itself, or the source is a replica of it"):
        mirror(pair.target, pair.source, NAME, MirrorRequest("back"))
    settings = pair.source.store.load(NAME).settings
    pair.source.store.drop_topic(NAME)
    with pytest.raises(UnknownTopicError):
        pair.mirror()
    pair.source.store.create_topic(NewTopic(NAME, "orders", settings, 2, 0))
    with pytest.raises(PolicyError, match="the target is a replica of another topic"):
        pair.mirror()


def test_a_replica_without_anything_is_not_promoted_c64(tmp_path):
    pair = a_pair("memory", tmp_path)
    report = pair.mirror(stops=lambda: True)
    assert (report.stopped, report.changed, report.replica_version) == (True, False, 0)
    with pytest.raises(PolicyError, match="the first copy of its source has not completed"):
        promote(pair.target, NAME)


@STORES
def test_a_stopped_copy_leaves_its_files_to_the_next_c65(kind, tmp_path):
    pair = a_pair(kind, tmp_path)
    seen: list[int] = []
    assert pair.mirror(acquire=seen.append, stops=lambda: len(seen) >= 3).stopped
    report = pair.mirror()
    assert report.files_reused >= 1
    check_same(pair.source, pair.target)


def test_a_damaged_source_is_named_c65(tmp_path):
    pair = a_pair("memory", tmp_path)
    lost = pair.source.store.segments(pair.source.store.load(NAME))[0].path
    del pair.source.files.data[lost]
    with pytest.raises(DamagedError, match=lost):
        pair.mirror()
    assert pair.target.store.load(NAME).replica.version == 0


def test_a_source_that_went_back_is_not_copied_c64(tmp_path):
    pair = a_pair("memory", tmp_path)
    pair.mirrored()
    state = pair.target.store.load(NAME)
    ahead = TopicEdit("r", 0, {}, verb=Verb.REPLICATE, replica=replace(state.replica, version=99))
    pair.target.store.commit(state, ahead)
    with pytest.raises(ConflictError, match="the source went back: it is at version"):
        pair.mirror()
