"""A lake behind a gateway returns and raises what the lake itself does, for every operation of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

import lithify
from gateway.conftest import Served
from lithify.api.lake import Lake
from lithify.daemons.cleaner.note_writer import NoteWriter
from lithify.errors import (
    GatewayError,
    LithifyError,
    NothingToUndoError,
    RefusedError,
    RoundAbandonedError,
    RoundsFailedError,
    UnknownGroupError,
    UnknownStreamError,
    UnknownTopicError,
)
from lithify.gateway.client import calls
from lithify.gateway.client.answers import ToldError, error_of, report_of
from lithify.gateway.client.remote_lake import RemoteLake, remote_lake
from lithify.gateway.operations.operation import PREFIX, Operation, Target
from lithify.gateway.operations.table import OPERATIONS
from lithify.gateway.server import routes
from lithify.gateway.server.jobs.jobs import Job
from lithify.model.failure import LogFailure
from lithify.service.documents import put_failures
from lithify.testing.oracle_engine import OracleRound
from support.servers.gateways import serving_gateway

SIDE_BY_SIDE = {"compaction.mode": "side-by-side"}
RECORDS = [lithify.Record(key=key, value=value) for key, value in ((b"a", b"1"), (b"a", b"2"), (b"b", b"3"))]


@pytest.fixture
def lake(served: Served) -> Lake:
    """Three topics, one of which fails, and a group."""
    for name, config in (("shop/orders", {}), ("shop/views", SIDE_BY_SIDE), ("events", {"cleanup.policy": "delete"})):
        served.lake.create_topic(name, config=config).append(RECORDS)
    with served.lake.topic("events").reader(group="billing") as reader:
        for batch in reader.batches():
            reader.commit()
            assert batch is not None
    store, state = served.lake.warehouse.store, served.lake.topic("shop/orders").state()
    put_failures(store, state, {0: LogFailure(2, 1, 2, 3, "no space")})
    return served.lake


@pytest.fixture
def remote(served: Served, lake: Lake) -> Iterator[RemoteLake]:
    found = remote_lake(served.url)
    yield found
    found.close()


CALLS: dict[str, Callable[[Any], Any]] = {
    "list_topics": lambda lake: lake.topic_infos(),
    "topic_names": lambda lake: tuple(topic.name for topic in lake.topics()),
    "create_topic": lambda lake: lake.create_topic("new", 2, config={"retention.ms": "7d"}).info(),
    "topic_info": lambda lake: lake.topic("shop/orders").info(),
    "alter_topic": lambda lake: lake.topic("shop/orders").alter({"segment.bytes": "1MiB"}, partitions=3),
    "delete_topic": lambda lake: lake.delete_topic("shop/orders"),
    "list_streams": lambda lake: lake.streams(),
    "create_stream": lambda lake: lake.create_stream("eu", {"ttl": "7d"}).info(),
    "stream_info": lambda lake: lake.stream("shop").info(),
    "stream_topics": lambda lake: tuple(topic.name for topic in lake.stream("shop").topics()),
    "edit_stream": lambda lake: lake.stream("shop").edit({"compact": "true", "segment.bytes": "1MiB"}),
    "delete_stream": lambda lake: lake.stream("shop").delete(topics=True),
    "warehouse_info": lambda lake: lake.info(),
    "upgrade": lambda lake: lake.upgrade(),
    "status": lambda lake: lake.status(now_ms=5),
    "topic_status": lambda lake: lake.topic("shop/orders").status(now_ms=5),
    "plan": lambda lake: lake.topic("shop/orders").plan(partitions=[0]),
    "compact": lambda lake: lake.topic("shop/orders").compact(),
    "history": lambda lake: _compacted(lake, "shop/orders").history(),
    "versions": lambda lake: _compacted(lake, "shop/orders").versions(),
    "verify": lambda lake: _compacted(lake, "shop/orders").verify(),
    "throttle_topic": lambda lake: lake.topic("shop/orders").throttle(read_rate="20MB/s"),
    "throttle": lambda lake: lake.throttle(read_rate=10**6, shared=True),
    "quarantine": lambda lake: lake.quarantine(),
    "release": lambda lake: lake.topic("shop/orders").release(),
    "retain": lambda lake: lake.topic("events").retain(now_ms=5),
    "plan_delete_records": lambda lake: lake.topic("shop/orders").plan_delete_records(0, 1),
    "delete_records": lambda lake: lake.topic("shop/orders").delete_records(0, 1),
    "plan_truncate": lambda lake: lake.topic("shop/orders").plan_truncate(0, 2),
    "truncate": lambda lake: lake.topic("shop/orders").truncate(0, 2),
    "plan_uncompact": lambda lake: _compacted(lake, "shop/views").plan_uncompact(),
    "uncompact": lambda lake: _compacted(lake, "shop/views").uncompact(),
    "plan_undo": lambda lake: _compacted(lake, "shop/orders").plan_undo(),
    "undo": lambda lake: _compacted(lake, "shop/orders").undo(),
    "sweep": lambda lake: _compacted(lake, "shop/orders").sweep(),
    "list_groups": lambda lake: lake.groups(),
    "describe_group": lambda lake: lake.group("billing").describe(),
    "plan_reset_group": lambda lake: lake.group("billing").plan_reset("events", lithify.AtTime(0), partition=0),
    "reset_group": lambda lake: lake.group("billing").reset("events", "earliest", lease_ms=5_000),
    "plan_delete_group": lambda lake: lake.group("billing").plan_delete(),
    "layout": lambda lake: lake.topic("shop/orders").layout(partitions=[0]),
    "browse": lambda lake: lake.topic("shop/orders").browse(0, start=1),
    "key_history": lambda lake: lake.topic("shop/orders").key_history(b"a"),
    "delete_group": lambda lake: lake.group("billing").delete("events", lease_ms=5_000),
}
"""A call of each operation on a lake in memory."""
SHARED = {one.name for one in OPERATIONS if one.of in (Target.STANDING_JOBS, Target.REPLICAS)} | {"running_cleaners"}
"""What needs the database that gateways share."""


def _compacted(lake: Any, name: str) -> Any:
    lake.topic(name).compact()
    return lake.topic(name)


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.name not in SHARED], ids=lambda one: one.name)
def test_a_report_is_the_one_that_the_gateway_had(
    remote: RemoteLake, monkeypatch: pytest.MonkeyPatch, operation: Operation
):
    had: list[Any] = []
    as_json = routes.to_json

    def remembered(result: Any) -> Any:
        had.append(result)
        return as_json(result)

    monkeypatch.setattr(routes, "to_json", remembered)
    found = CALLS[operation.name](remote)
    kind = operation.report_class()
    if kind is None:
        assert found == (() if operation.name.startswith("delete") else tuple(had))
        return
    last = [one for one in had if isinstance(one, kind)]
    assert last, had
    if operation.many:
        assert len(found) > 0
        assert list(found) == last[-len(found) :]
    else:
        assert found == last[-1] or found == replace(last[-1], duration_ms=found.duration_ms)


def test_every_operation_is_tried():
    assert set(CALLS) == {one.name for one in OPERATIONS} - SHARED


def test_what_gateways_share_is_the_same(tmp_path):
    here = lithify.open(str(tmp_path / "lake"))
    here.create_topic("shop/orders")
    with serving_gateway(here) as url, closing(remote_lake(url)) as there:
        assert there.replicas().status() == here.replicas().status() == ()
        here.replicas().add("shop/orders", to=str(tmp_path / "copy"), name="copy")
        for name in (None, "copy"):
            lags = (there.replicas().status(name), here.replicas().status(name))
            assert [replace(lag, lag_ms=0) for lag in lags[0]] == [replace(lag, lag_ms=0) for lag in lags[1]]
        with pytest.raises(RefusedError, match="nothing"):
            there.replicas().status("nothing")
        jobs = there.standing_jobs()
        info = jobs.add("table", ["hydrate", "shop/orders", "--to", "a b.db"], every_ms=60_000, paused=True)
        assert jobs.list() == here.standing_jobs().list() == (info,)
        assert jobs.resume("table").state == "waiting"
        assert jobs.pause("table") == info == jobs.remove("table")
        with pytest.raises(RefusedError, match="table"):
            jobs.remove("table")
        loop = here.cleaner(cleaner_id="c1")
        loop.leases.register("c1")
        NoteWriter(loop.coordination, loop.options, loop.reporter, 5).write(7)
        assert there.running_cleaners() == here.running_cleaners()
        assert [one.cleaner for one in there.running_cleaners()] == ["c1"]


def test_positional_arguments_have_the_order_of_the_signature():
    import inspect

    for one in OPERATIONS:
        takes = [name for name in inspect.signature(one.function()).parameters if name in one.accepts]
        assert takes == list(one.accepts), one.name


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda lake: lake.topic("nothing").info(), UnknownTopicError),
        (lambda lake: lake.topic("nothing").compact(), UnknownTopicError),
        (lambda lake: lake.stream("nothing").info(), UnknownStreamError),
        (lambda lake: lake.group("nothing").describe(), UnknownGroupError),
        (lambda lake: lake.topic("events").undo(), NothingToUndoError),
        (lambda lake: lake.topic("a b"), RefusedError),
    ],
)
def test_an_error_is_the_one_that_the_lake_raises(remote: RemoteLake, lake: Lake, call, kind):
    with pytest.raises(kind) as direct:
        call(lake)
    with pytest.raises(kind) as through:
        call(remote)
    assert type(through.value) is type(direct.value)
    assert (through.value.message, through.value.hint) == (direct.value.message, direct.value.hint)


def test_a_round_tells_of_its_progress_and_a_run_that_failed_has_its_report(remote: RemoteLake, lake: Lake):
    phases: list[str] = []
    report = remote.topic("shop/orders").compact(progress=lambda phase, _done, _total: phases.append(phase))
    assert report.changed
    assert phases[-1] == "commit"

    def fails(*_: Any, **__: Any) -> Any:
        raise LithifyError("no")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OracleRound, "find_survivors", fails)
        lake.topic("shop/views").append(RECORDS)
        with pytest.raises(RoundsFailedError) as failed:
            remote.topic("shop/views").compact()
    assert [log.error for log in failed.value.report.failed] == ["no"]


def test_a_round_that_is_cancelled_at_the_gateway_has_its_report(remote: RemoteLake, monkeypatch: pytest.MonkeyPatch):
    def is_cancelled(job: Job, *_: Any) -> None:
        job.cancelled = True
        raise RoundAbandonedError("the job was cancelled")

    monkeypatch.setattr(Job, "progress", is_cancelled)
    with pytest.raises(RoundsFailedError, match="the job was cancelled") as failed:
        remote.topic("shop/orders").compact()
    assert failed.value.hint == "the log is unchanged"
    assert [log.error_code for log in failed.value.report.failed] == ["RoundAbandoned"]


def test_a_list_comes_whole_whatever_the_size_of_its_pages(remote: RemoteLake, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calls, "ITEMS", 1)
    assert [topic.name for topic in remote.topics()] == ["events", "shop/orders", "shop/views"]


def test_what_only_the_machine_of_the_gateway_could_take_is_refused(remote: RemoteLake):
    with pytest.raises(RefusedError, match="--spark-conf is not available through a gateway"):
        remote.topic("shop/orders").compact(spark_conf={"spark.master": "yarn"})
    with pytest.raises(RefusedError, match="`repair` of a lake is not available through a gateway"):
        remote.repair("shop/orders")
    with pytest.raises(RefusedError, match="its own database"):
        remote.group("billing", coordination_url="sqlite:///x")


def test_fields_of_a_later_version_are_ignored_and_missing_ones_are_told():
    operation = next(one for one in OPERATIONS if one.name == "throttle_topic")
    kind = operation.report_class()
    told = {"topic": "t", "id": "1", "read_rate_bytes": 1, "write_rate_bytes": None, "shared": False, "unheard_of": [1]}
    assert report_of(kind, told, "http://x").read_rate_bytes == 1
    del told["read_rate_bytes"]
    with pytest.raises(GatewayError, match="another RatesReport than this version knows") as raised:
        report_of(kind, told, "http://x")
    assert "versions of Lithify" in raised.value.hint


def test_a_code_of_a_later_version_is_its_nearest_base():
    assert type(error_of(ToldError("Unheard", "no", exit_code=2))) is RefusedError
    assert type(error_of(ToldError("Unheard", "no"))) is LithifyError


def test_names_are_one_part_of_a_path():
    (info,) = (one for one in OPERATIONS if one.name == "topic_info")
    path = calls.path_of(info, {"topic": "persistent://a/b/c?d%2F#e"})
    assert path == f"{PREFIX}/topics/persistent%3A%2F%2Fa%2Fb%2Fc%3Fd%252F%23e"
    assert info.of is Target.TOPIC
