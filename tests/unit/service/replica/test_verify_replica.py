"""What `replica verify` finds, by itself and against the source (C63, C65)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lithify.columnar.files.access import local_path
from lithify.errors import PolicyError
from lithify.model.finding import FindingKind
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.service.proof.verify import verify
from lithify.service.replica.promote import promote
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.engines.reading_inspector import ReadingInspector
from support.faults.topics import NAME, SIDE_BY_SIDE, records
from support.topics.replicas import a_pair

pytestmark = pytest.mark.long


@pytest.fixture(params=["memory", "iceberg"])
def pair(request, tmp_path):
    pair = a_pair(request.param, tmp_path, SIDE_BY_SIDE)
    pair.mirror()
    return pair


def a_file(warehouse):
    """The path of a segment of log 0."""
    return warehouse.store.segments(warehouse.store.load(NAME), [0])[0].path


def damage(warehouse, path, how):
    """Takes a file away, or gives it other content."""
    if path.startswith("memory:"):
        content = warehouse.files.data.pop(path)
        if how == "other":
            warehouse.files.data[path] = (content[0]._replace(value=b"!"), *content[1:])
        return
    file = Path(local_path(path))
    content = bytearray(file.read_bytes())
    file.unlink()
    if how == "other":
        content[len(content) // 3] ^= 1
        file.write_bytes(content)


def test_a_replica_without_damage_is_clean_c63(pair):
    alone = verify_replica(None, pair.target, NAME)
    both = verify_replica(pair.source, pair.target, NAME)
    assert (alone.findings, both.findings) == ((), ())
    assert (alone.source_version, both.source_version) == (None, both.replica_version)
    assert (alone.files, alone.records) == (both.files, both.records)
    assert both.bytes_read == 3 * alone.bytes_read > 0
    assert both.to_json()["clean"]


@pytest.mark.parametrize(("how", "kind"), [("gone", "file_missing"), ("other", None)])
@pytest.mark.parametrize("alone", [True, False])
def test_a_damaged_copy_is_named_c65(pair, how, kind, alone):
    path = a_file(pair.target)
    damage(pair.target, path, how)
    found = verify_replica(None if alone else pair.source, pair.target, NAME).findings
    if not found and how == "other" and alone:  # the memory store has no checksums
        assert path.startswith("memory:")
        return
    assert {finding.path for finding in found} == {path}
    assert kind is None or {finding.kind for finding in found} == {FindingKind(kind)}


def test_a_lost_file_is_damage_also_where_the_replica_moves_on_meanwhile_c8(pair):
    path = a_file(pair.target)
    damage(pair.target, path, "gone")
    append(pair.source, NAME, records(range(60, 70), keys=7))
    before = pair.target.store.load(NAME).version

    def meanwhile(_done, _all):
        if pair.target.store.load(NAME).version == before:
            pair.mirror()

    found = verify_replica(None, pair.target, NAME, meanwhile).findings
    assert pair.target.store.load(NAME).version > before
    assert [finding.path for finding in found if finding.kind is FindingKind.FILE_MISSING] == [path]


@pytest.mark.parametrize("how", ["gone", "other"])
def test_a_damaged_source_is_told_from_a_damaged_replica_c65(pair, how):
    path = a_file(pair.source)
    damage(pair.source, path, how)
    assert verify_replica(None, pair.target, NAME).clean
    (finding,) = verify_replica(pair.source, pair.target, NAME).findings
    assert path in finding.message


def test_a_source_that_moved_on_is_compared_as_far_as_both_have_the_same_c63(pair):
    append(pair.source, NAME, records(range(60, 70), keys=7))
    report = verify_replica(pair.source, pair.target, NAME)
    assert report.clean
    assert report.source_version == report.replica_version + 1
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    assert verify_replica(pair.source, pair.target, NAME).clean
    damage(pair.target, a_file(pair.target), "other")
    assert not verify_replica(pair.source, pair.target, NAME).clean


def test_a_version_that_the_source_keeps_is_compared_whole_c63(pair):
    version = pair.source.store.load(NAME).version
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    report = verify_replica(pair.source, pair.target, NAME)
    assert (report.findings, report.source_version) == ((), version)


def test_states_that_differ_are_found_c63(pair):
    state = pair.target.store.load(NAME)
    log = replace(state.log(1), epoch=77)
    pair.target.store.commit(state, TopicEdit("r", pair.clock.now_ms(), {1: log}, verb=Verb.REPLICATE))
    (finding,) = verify_replica(pair.source, pair.target, NAME).findings
    assert (finding.partition, finding.kind) == (1, FindingKind.WRONG_METADATA)


def test_a_topic_of_its_own_is_not_verified_as_a_replica_c64(pair):
    with pytest.raises(PolicyError, match="it is not a replica"):
        verify_replica(None, pair.source, NAME)
    promote(pair.target, NAME)
    with pytest.raises(PolicyError, match="it is not a replica"):
        verify_replica(pair.source, pair.target, NAME)


def test_verify_judges_a_replica_and_what_is_done_after_its_promotion_c63(pair):
    """Not by the rules of rounds: what a copy changed is right if it is as in the source."""
    for _ in range(2):
        append(pair.source, NAME, records(range(60, 90), keys=7))
        compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
        pair.mirror()
        assert verify(pair.target, ReadingInspector(pair.target.files), NAME).findings == ()
    promote(pair.target, NAME)
    append(pair.target, NAME, records(range(90, 120), keys=7))
    compact(pair.target, OracleEngine(pair.target.files), NAME, RunRequest())
    report = verify(pair.target, ReadingInspector(pair.target.files), NAME)
    assert (report.findings, report.against) == ((), report.version - 1)
