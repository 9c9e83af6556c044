"""What goes wrong in tasks: damage is named, one log does not stop another, attempts may be repeated (C8, C31)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lithify.errors import DamagedError, EngineError
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.ports.engine import PlannedLog, Rewritten, RunLimits
from lithify.rules.compaction.decisions import CountedSegment, Rewrite
from lithify.rules.compaction.key_pass_shape import KeyPassShape
from lithify.rules.compaction.outcome import LogFindings
from lithify.rules.compaction.survivor_rules import Cause
from lithify.spark.tasks import job_errors
from spark.engines import engine_on
from support.topics.stored_topics import records_in, silent

DAMAGES = {
    "missing": lambda path: path.unlink(),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "overwritten": lambda path: path.write_bytes(b"not a segment at all"),
    "a flipped bit": lambda path: path.write_bytes(flipped(path.read_bytes())),
}


def flipped(data: bytes) -> bytes:
    """A bit of the first page that holds data is wrong."""
    at = 40
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


@pytest.fixture
def topic_of_three(topic):
    for partition in range(3):
        for _ in range(2):
            topic.append(partition, [Record(b"%d" % (i % 10), b"v" * 50) for i in range(50)])
    return topic


@pytest.fixture(params=["read by ranges", "shuffled"])
def way(request, monkeypatch):
    forced = KeyPassShape(2, shuffled=request.param == "shuffled")
    monkeypatch.setattr("lithify.spark.engine.key_pass_shapes", lambda plans, *_, **__: [forced] * len(plans))


def open_round(engine, topic, run_id="run"):
    return engine.open_round([PlannedLog(topic.state, plan) for plan in topic.plans()], RunLimits(), run_id, silent)


def survivors_of(round_):
    return {log.partition: findings for log, findings in round_.find_survivors().items()}


def rewritten(round_, topic, rewrites):
    """What comes of a rewrite of each of the first logs, in their order."""
    by_log = {LogId(topic.state.name, one.partition): [one] for one in rewrites}
    results = round_.rewrite(by_log)
    return [results[log][0] for log in by_log]


@pytest.mark.parametrize("damage", ["missing", "cut short", "overwritten"])
def test_a_damaged_segment_fails_its_log_alone_and_is_named(way, engine, topic_of_three, damage):
    path = topic_of_three.segments[1][0].path
    DAMAGES[damage](Path(path))
    with open_round(engine, topic_of_three) as round_:
        found = survivors_of(round_)
    assert isinstance(found[1], DamagedError)
    assert path in str(found[1])
    assert found[1].hint
    assert [type(found[p]) for p in (0, 2)] == [LogFindings, LogFindings]
    assert found[0].losers == {Cause.SUPERSEDED: 90}


@pytest.mark.parametrize("damage", ["missing", "cut short", "overwritten"])
def test_a_damaged_segment_whose_keys_may_take_a_second_core_fails_its_log_alone(
    engine, topic_of_three, monkeypatch, damage
):
    """Before its task reads it, the driver has looked at it."""
    monkeypatch.setattr("lithify.rules.compaction.key_pass_shape.LEAST_RECORDS", 10)
    DAMAGES[damage](Path(path := topic_of_three.segments[1][0].path))
    with open_round(replace(engine, workers=replace(engine.workers, one_machine=True)), topic_of_three) as round_:
        found = survivors_of(round_)
    assert isinstance(found[1], DamagedError)
    assert path in str(found[1])
    assert [found[p].losers for p in (0, 2)] == 2 * [{Cause.SUPERSEDED: 90}]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_met_while_rewriting_fails_its_rewrite_alone(engine, topic_of_three, damage):
    with open_round(engine, topic_of_three) as round_:
        found = survivors_of(round_)
        rewrites = [
            Rewrite((CountedSegment(last, found[p].survivors[last.path]),))
            for p, (_, last) in enumerate(topic_of_three.segments)
        ]
        path = topic_of_three.segments[2][1].path
        DAMAGES[damage](Path(path))
        results = rewritten(round_, topic_of_three, rewrites)
    assert [type(result) for result in results] == [Rewritten, Rewritten, DamagedError]
    assert path in str(results[2])
    assert [len(records_in(result.segments[0])) for result in results[:2]] == [10, 10]


def test_a_repeated_attempt_writes_files_of_its_own(engine, topic_of_three):
    with open_round(engine, topic_of_three) as round_:
        found = survivors_of(round_)
        _, last = topic_of_three.segments[0]
        rewrites = [Rewrite((CountedSegment(last, found[0].survivors[last.path]),))]
        ((first,), (second,)) = (rewritten(round_, topic_of_three, rewrites)[0].segments for _ in range(2))
    assert first.path != second.path
    assert records_in(first) == records_in(second)


def test_a_small_round_is_two_jobs_of_one_task_each(engine, session, topic_of_three):
    """Stages, shuffles and frames that Spark keeps take longer to set up than it takes to do such a round."""
    with open_round(engine, topic_of_three, "small") as round_:
        found = survivors_of(round_)
        rewrites = [
            Rewrite((CountedSegment(last, found[p].survivors[last.path]),))
            for p, (_, last) in enumerate(topic_of_three.segments)
        ]
        results = rewritten(round_, topic_of_three, rewrites)
    assert [len(records_in(result.segments[0])) for result in results] == [10, 10, 10]
    tracker = session.sparkContext.statusTracker()
    jobs = [job for phase in ("key_pass", "rewrite") for job in tracker.getJobIdsForGroup(f"small-{phase}")]
    stages = [tracker.getStageInfo(stage).numTasks for job in jobs for stage in tracker.getJobInfo(job).stageIds]
    assert (len(jobs), stages) == (2, [1, 1])


def test_dead_positions_are_released_also_when_the_round_fails(engine, session, topic_of_three, monkeypatch):
    monkeypatch.setattr("lithify.spark.keypass.job.FULL_RECORDS", 1)  # else they come to the driver
    cached = session.sparkContext._jsc.getPersistentRDDs
    before = set(cached())
    with pytest.raises(ZeroDivisionError), open_round(engine, topic_of_three) as round_:
        round_.find_survivors()
        assert set(cached()) > before
        raise ZeroDivisionError
    assert set(cached()) == before


def test_a_job_that_fails_otherwise_says_why_in_one_line(engine, topic_of_three, monkeypatch):
    def break_task(_batches, unpack):
        raise ValueError("the disk of this worker\nis on fire")
        yield

    monkeypatch.setattr("lithify.spark.keypass.direct._run_ranges", break_task)
    with pytest.raises(EngineError, match="ValueError: the disk of this worker") as caught:
        topic_of_three.round(engine)
    assert "\n" not in str(caught.value)


def test_a_session_that_is_gone_is_an_engine_error(topic_of_three):
    def gone():
        raise EngineError("Spark did not start: no such cluster")

    with pytest.raises(EngineError, match="no such cluster"):
        topic_of_three.round(engine_on(gone))


def test_errors_that_are_no_traceback_show_their_first_line():
    with pytest.raises(EngineError, match="a Spark job failed: Job aborted due to stage failure"), job_errors():
        raise RuntimeError("\n  Job aborted due to stage failure: lost executor\n\tat org.apache.Spark")
