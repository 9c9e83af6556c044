"""The events of a gateway: what its cleaner and jobs do, and what changes in the catalog, as a follower gets it."""

import json
from collections.abc import Iterator

import lithify
from gateway.conftest import Served, orders
from lithify.api.lake import Lake
from lithify.daemons.cleaner.cleaner_options import RoundProgress
from lithify.gateway.server.live.events import KEPT, Events
from lithify.gateway.server.live.watched import Watched, WatchedLake
from lithify.reports.events import CleanerEvent, EventKind
from lithify.testing import FakeClock, memory_lake
from support.servers.gateways import serving_gateway

ROUND = {
    "run_id": "r",
    "version": 2,
    "changed": True,
    "partitions": [0],
    "records_in": 3,
    "records_out": 2,
    "removed": 1,
    "bytes_read": 9,
    "bytes_written": 8,
    "overdue_ms": 0,
    "duration_ms": 5,
}


def followed(served: Served, query: str = "") -> Iterator[tuple[str, dict]]:
    with served.session.get(f"{served.url}/api/v1/events{query}", stream=True, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        kind = ""
        for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                yield kind, json.loads(value)


def test_a_follower_sees_a_job_from_its_beginning_to_its_end(served: Served):
    orders(served.lake)
    events = followed(served)
    kind, hello = next(events)
    assert (kind, hello["gateway"], hello["version"]) == ("hello", "g1", lithify.__version__)
    job = served.ask("POST", "/api/v1/topics/shop%2Forders/rounds", json={}).json()["job"]
    states = []
    for kind, data in events:
        if kind == "job" and data["job"] == job:
            states.append(data["state"])
            if data["ended_ms"]:
                break
    assert states[-1] == "done"
    assert "report" not in data
    assert "who" not in data


def test_only_rows_that_changed_are_sent(served: Served):
    orders(served.lake)
    served.lake.create_topic("other")
    served.ask("GET", "/api/v1/status")
    events = followed(served)
    next(events)
    served.lake.topic("other").append([lithify.Record(key=b"a", value=b"1")])
    rows = next(data for kind, data in events if kind == "topics")
    assert [row["topic"] for row in rows["topics"]] == ["other"]
    served.lake.delete_topic("other")
    rows = next(data for kind, data in events if kind == "topics")
    assert (rows["topics"], rows["gone"]) == ([], ["other"])


def test_a_follower_is_told_when_the_clock_of_the_gateway_jumps():
    clock = FakeClock(1_700_000_000_000)
    with serving_gateway(memory_lake(clock)) as url:
        served = Served(memory_lake(), url)
        events = followed(served)
        assert next(events)[0] == "hello"
        clock.advance(3_600_000)  # time that passes is no jump
        for jump_ms in (60_000, -86_400_000):
            clock.set(clock.now_ms() + jump_ms)
            assert next(events) == ("clock", {"now_ms": clock.now_ms()})
        served.session.close()


def test_who_comes_back_gets_what_it_missed_and_in_another_run_all():
    events = Events()
    for number in range(3):
        events.told(CleanerEvent(EventKind.ROUND, number, "c", f"t{number}", ROUND))
    assert [data["topic"] for _, _, data in events.since(0)] == ["t0", "t1", "t2"]
    assert [data["topic"] for _, _, data in events.since(2)] == ["t2"]
    assert events.since(2)[0][2]["text"].startswith("1 log, 3 → 2 records")


def test_events_and_progress_are_bounded():
    events = Events()
    events.told(CleanerEvent(EventKind.ROUND, 1, "c", "t", ROUND))
    for number in range(2 * KEPT):
        events.told(CleanerEvent(EventKind.STOPPED, number, "c", None, {"reason": "x"}))
        events.proceeded(RoundProgress("w", ("t",), 1, "rewrite", number, 2 * KEPT))
    kept = events.since(0)
    assert len(kept) == KEPT + 2
    assert kept[0][2]["event"] == "round"  # not pushed out by others
    assert kept[-1][2]["done"] == 2 * KEPT - 1
    events.proceeded(RoundProgress("w", ("t",), 1, ended=True))
    assert [data["ended"] for _, kind, data in events.since(0) if kind == "round"] == [True]


def test_the_kept_state_is_the_state():
    clock = FakeClock(now_ms=1_000_000)
    lake = memory_lake(clock)
    kept = WatchedLake(lake.warehouse, Watched(lake))
    orders(lake)
    assert kept.status() == lake.status()
    lake.topic("shop/orders").compact()
    lake.create_topic("later")
    assert kept.status() == lake.status()
    assert kept.status(now_ms=5) == lake.status(now_ms=5)
    lake.delete_topic("later")
    assert kept.status() == lake.status()


def test_a_catalog_that_is_away_is_told_and_so_is_its_return(monkeypatch):
    lake = memory_lake()
    orders(lake)
    watched = Watched(lake)
    watched.try_look()
    number = watched.number

    def away() -> None:
        raise lithify.errors.WarehouseError("the catalog is away")

    monkeypatch.setattr(type(lake.warehouse.store), "change_tokens", lambda _self: away())
    watched.try_look()
    assert watched.since(number).error == "the catalog is away"
    assert watched.since(watched.number).rows == ()
    monkeypatch.undo()
    watched.try_look()
    assert watched.since(number).error is None


def test_the_rounds_of_a_cleaner_tell_of_their_progress(tmp_path):
    lake: Lake = lithify.open(str(tmp_path))
    orders(lake)
    told: list[RoundProgress] = []
    loop = lake.cleaner(cleaner_id="c1")
    loop.reporter.progress_listener = told.append
    loop.run(once=True)
    assert told[0].topics == ("shop/orders",)
    assert {one.work for one in told} == {told[0].work}
    assert [one.ended for one in told].count(True) == 1
    assert told[-1].ended
    assert any(one.total > 0 for one in told)
