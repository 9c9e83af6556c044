"""Gateways that coordinate a group of Kafka's clients fence each other in every database that they may share (C58)."""

from __future__ import annotations

import random
from threading import Event, Thread

from leases.conftest import Open
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.errors import CoordinationError
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.gateways import LEASE_MS
from lithify.kafka_server.groups.offsets import Offsets
from lithify.kafka_server.groups.tenure import Tenure
from lithify.ports.groups import Groups
from lithify.testing.fake_clock import FakeClock
from support.kafka.group_servers import FIRST, GROUP, OneTopic, Server, wait
from support.servers.postgres import Postgres

NAMES = ("alpha", "beta", "gamma")
SEEDS, STEPS = 2, 60


def a_server(groups: Groups, name: str, topics: OneTopic, clock: FakeClock) -> Server:
    tenure = Tenure(groups, name, clock)
    return Server(tenure, Offsets(groups, topics, tenure, clock))


class Schedule:
    """Gateways do things at random. Only the one that became the coordinator last may commit."""

    def __init__(self, opened: Open, seed: int) -> None:
        self.random, self.clock, self.topics = random.Random(seed), FakeClock(), OneTopic()
        self.servers = [a_server(opened(f"here{seed}"), name, self.topics, self.clock) for name in NAMES]
        self.last: Server | None = None
        self.stored, self.offset, self.depth, self.accepted = list[int](), 0, 0, 0

    def step(self) -> None:
        server = self.random.choice(self.servers)
        match self.random.choice(["acquire", "commit", "commit", "commit", "pause", "beat", "give up"]):
            case "acquire" if server.tenure.acquire(GROUP):
                self.last = server
            case "commit" if self.depth < 2:
                self.commit(server)
            case "pause":
                awake = [one for one in self.servers if self.random.random() < 0.6]
                wait(
                    self.clock, *(one.tenure for one in awake), ms=self.random.choice([1_000, 5_000, LEASE_MS + 1_000])
                )
            case "beat":
                server.tenure.beat()
            case "give up" if self.random.random() < 0.3:
                server.tenure.give_up(GROUP)

    def commit(self, server: Server) -> None:
        """Others may do things in the middle of it."""
        self.offset += 1
        offset, others = self.offset, self.random.choice([0, 0, 3])

        def meanwhile() -> None:
            self.topics.meanwhile = lambda: None
            for _ in range(others):
                self.step()

        self.depth += 1
        self.topics.meanwhile = meanwhile
        (code,) = server.commit(offset)
        self.topics.meanwhile = lambda: None
        self.depth -= 1
        if code is Code.NONE:
            assert server is self.last
            self.stored, self.accepted = [offset], self.accepted + 1
        else:
            assert code is Code.NOT_COORDINATOR
        assert server.committed() == self.stored


def test_only_the_last_coordinator_commits_whatever_stalls(opened: Open) -> None:
    schedules = [Schedule(opened, seed) for seed in range(SEEDS)]
    for schedule in schedules:
        for _ in range(STEPS):
            schedule.step()
    assert sum(schedule.accepted for schedule in schedules) > 10


def test_a_gateway_whose_clock_stands_still_commits_nothing_after_another_one(opened: Open) -> None:
    """It believes that it holds everything, as if it had checked just before it was frozen."""
    topics, still, goes_on = OneTopic(), FakeClock(), FakeClock()
    alpha, beta = a_server(opened("here"), "alpha", topics, still), a_server(opened("here"), "beta", topics, goes_on)
    assert alpha.tenure.acquire(GROUP)
    assert alpha.offsets.hold(GROUP, [FIRST])
    ended, codes = Event(), list[tuple[bool, Code]]()

    def commits() -> None:
        for offset in range(10_000):
            was_over = taken.is_set()
            codes.append((was_over, *alpha.commit(offset)))
            if ended.wait(0.005):
                return

    taken, thread = Event(), Thread(target=commits)
    assert not beta.tenure.acquire(GROUP)
    thread.start()
    wait(goes_on, beta.tenure)
    assert beta.tenure.acquire(GROUP)
    taken.set()
    assert beta.commit(20_000) == [Code.NONE]
    while not any(was_over for was_over, _ in codes):
        ended.wait(0.01)
    ended.set()
    thread.join(30)
    assert (False, Code.NONE) in codes
    assert {code for was_over, code in codes if was_over} <= {Code.NOT_COORDINATOR, Code.UNKNOWN_MEMBER_ID}
    assert beta.committed() == [20_000]


def test_a_database_that_is_killed_in_the_middle_of_commits(server: Postgres, database: str, impatient: None) -> None:
    groups = SqlGroups(Transactions(engine_at(server.uri(database))), "here")
    alpha = a_server(groups, "alpha", OneTopic(), FakeClock())
    assert alpha.tenure.acquire(GROUP)
    acknowledged, failed, ended = [0], list[int](), Event()

    def commits() -> None:
        for offset in range(1, 100_000):
            try:
                assert alpha.commit(offset) == [Code.NONE]
                acknowledged.append(offset)
            except CoordinationError:
                failed.append(offset)
            if ended.is_set():
                return

    thread = Thread(target=commits)
    thread.start()
    for _ in range(3):
        seen, lost = len(acknowledged), len(failed)
        while len(acknowledged) < seen + 20:
            ended.wait(0.01)
        server.stop_at_once()
        while len(failed) == lost:
            ended.wait(0.01)
        server.start()
        seen = len(acknowledged)
        while len(acknowledged) == seen:
            ended.wait(0.01)
        (stored,) = alpha.committed()
        assert stored >= acknowledged[seen - 1]
    ended.set()
    thread.join(60)
    assert alpha.committed() == [max(acknowledged)]
