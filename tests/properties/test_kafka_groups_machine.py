"""Groups of Kafka's clients under random schedules: clients come, crash, come back, leave, and answers are late."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import Group, Joined, Phase, Synced
from lithify.kafka_server.groups.classic.joining import Join, joined
from lithify.kafka_server.groups.classic.sessions import Sync, committing, due_ms, elapsed, heartbeat, left, synced

PARTITIONS = 7
SESSION_MS, REBALANCE_MS = 10_000, 30_000
CALM_MS = 700_000
"""Longer than anything that a group waits for."""
HEARTBEAT_MS = 3_000
PROTOCOLS = {"range": (("range", b"x"),), "both": (("sticky", b"y"), ("range", b"x")), "more": (("range", b"z"),)}

clients = st.integers(0, 4)


@dataclass
class Client:
    """As Kafka's clients do: an error tells it how to go on. `waits` is the ticket of its request under way."""

    number: int
    static: bool
    protocols: str = "both"
    runs: bool = False
    member_id: str = ""
    generation: int = -1
    waits: int | None = None
    owns: frozenset[int] | None = None
    must_join: bool = True
    must_sync: Joined | None = None

    @property
    def name(self) -> str | None:
        return f"static-{self.number}" if self.static else None

    def restart(self) -> None:
        self.runs, self.member_id, self.generation = True, "", -1
        self.waits, self.owns, self.must_join, self.must_sync = None, None, True, None


class GroupsOfClients(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.group, self.now_ms, self.tickets, self.ids = Group(), 1_000, 0, 0
        self.clients = [Client(n, static=n >= 3) for n in range(5)]
        self.asked: dict[int, tuple[Client, str]] = {}
        """By ticket, who asked; and under which member id, as an answer to an earlier life is nobody's."""
        self.generations: dict[int, tuple[str | None, str]] = {}
        self.owners: dict[tuple[int, int], str] = {}

    def take(self, step) -> None:
        self.group = step.group
        for ticket, answer in step.answers:
            client, _ = self.asked.pop(ticket)  # KeyError: it was answered before
            if client.waits == ticket:
                client.waits = None
                self.told(client, answer)

    def told(self, client: Client, answer: Joined | Synced) -> None:
        match answer:
            case Joined(error=Code.NONE):
                one = self.generations.setdefault(answer.generation, (answer.protocol, answer.leader))
                assert one == (answer.protocol, answer.leader) or client.static
                client.member_id, client.generation = answer.member_id, answer.generation
                client.must_sync, client.must_join = answer, False
            case Joined(error=Code.MEMBER_ID_REQUIRED):
                client.member_id = answer.member_id
            case Joined(error=Code.UNKNOWN_MEMBER_ID):
                client.member_id, client.generation = "", -1
            case Joined(error=Code.FENCED_INSTANCE_ID) | Synced(error=Code.FENCED_INSTANCE_ID):
                client.runs = False
            case Joined(error=Code.REBALANCE_IN_PROGRESS):
                pass
            case Synced(error=Code.NONE):
                client.must_sync, client.owns = None, frozenset(answer.assignment)
                for partition in client.owns:
                    owner = self.owners.setdefault((client.generation, partition), str(client.number))
                    assert owner == str(client.number), f"two own {partition} in generation {client.generation}"
            case Synced(error=error):
                self.failed(client, error)
            case other:
                raise AssertionError(other)

    def failed(self, client: Client, error: Code) -> None:
        assert error in {
            Code.REBALANCE_IN_PROGRESS,
            Code.ILLEGAL_GENERATION,
            Code.UNKNOWN_MEMBER_ID,
            Code.FENCED_INSTANCE_ID,
        }
        client.must_join, client.must_sync, client.owns = True, None, None
        if error is Code.UNKNOWN_MEMBER_ID:
            client.member_id, client.generation = "", -1
        client.runs = error is not Code.FENCED_INSTANCE_ID

    def ticket(self, client: Client) -> int:
        self.tickets += 1
        self.asked[self.tickets] = client, client.member_id
        client.waits = self.tickets
        return self.tickets

    def act(self, client: Client) -> None:
        """Its next request, if none is under way."""
        if not client.runs or client.waits is not None:
            return
        if client.must_join:
            self.ids += 1
            join = Join(
                client.member_id,
                client.name,
                "client",
                "/host",
                SESSION_MS,
                REBALANCE_MS,
                "consumer",
                PROTOCOLS[client.protocols],
                ticket=self.ticket(client),
                new_id=f"m{self.ids}",
            )
            client.owns = None
            self.take(joined(self.group, join, self.now_ms))
        elif (told := client.must_sync) is not None:
            shares = {}
            if told.members and not told.skip_assignment:
                ids = [member_id for member_id, _, _ in told.members]
                shares = {name: bytes(range(n, PARTITIONS, len(ids))) for n, name in enumerate(ids)}
            sync = Sync(
                client.member_id, client.name, client.generation, "consumer", told.protocol, shares, self.ticket(client)
            )
            self.take(synced(self.group, sync, self.now_ms))

    def beat(self, client: Client) -> None:
        if client.runs and client.generation >= 0 and client.waits is None and not client.must_join:
            self.group, code = heartbeat(self.group, client.member_id, client.name, client.generation, self.now_ms)
            if code is not Code.NONE:
                self.failed(client, code)

    def pass_time(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        for _ in range(1_000):
            due = due_ms(self.group)
            if due is None or due > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, due)
            self.take(elapsed(self.group, self.now_ms))
        raise AssertionError("something is due again and again")

    @rule(number=clients)
    def start(self, number: int) -> None:
        self.clients[number].restart()
        self.act(self.clients[number])

    @rule(number=clients)
    def go_on(self, number: int) -> None:
        self.act(self.clients[number])

    @rule()
    def all_go_on(self) -> None:
        for client in self.clients:
            self.act(client)
            self.act(client)

    @rule(number=st.integers(1, 5))
    def settle(self, number: int) -> None:
        """The first of them come, and share the partitions."""
        for client in self.clients[-number:]:
            if not client.runs:
                client.restart()
        for _ in range(4):
            self.all_go_on()
            for client in self.clients:
                self.beat(client)
            self.pass_time(1_100)

    @rule(number=clients)
    def crash(self, number: int) -> None:
        self.clients[number].runs = False

    @rule(number=clients)
    def lose_the_connection(self, number: int) -> None:
        self.clients[number].waits = None

    @rule(number=clients)
    def heartbeat(self, number: int) -> None:
        self.beat(self.clients[number])

    @rule(number=clients, protocols=st.sampled_from(["both", "more"]))
    def subscribe_to_others(self, number: int, protocols: str) -> None:
        client = self.clients[number]
        client.protocols = protocols
        client.must_join = client.must_join or client.waits is None

    @rule(number=clients)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        if client.runs and client.member_id:
            step, _ = left(self.group, [(client.member_id, client.name)], self.now_ms)
            client.runs, client.waits = False, None
            self.take(step)

    @rule(number=clients)
    def commit(self, number: int) -> None:
        client = self.clients[number]
        member = client.member_id, client.name, client.generation
        self.group, code = committing(self.group, *member, self.now_ms)
        if code is Code.NONE and client.generation >= 0:
            assert client.generation == self.group.generation
            assert client.member_id in self.group.members

    @rule(ms=st.sampled_from([50, 1_000, 4_000, 11_000, 31_000]))
    def wait(self, ms: int) -> None:
        self.pass_time(ms)

    @precondition(lambda self: self.asked)
    @invariant()
    def who_waits_waits_for_something(self) -> None:
        assert due_ms(self.group) is not None

    @invariant()
    def every_ticket_is_a_member_s(self) -> None:
        members = self.group.members.values()
        waiting = [ticket for member in members for ticket in (member.join, member.sync) if ticket is not None]
        assert sorted(waiting) == sorted(self.asked)

    @invariant()
    def the_group_is_consistent(self) -> None:
        group = self.group
        assert (group.phase is Phase.EMPTY) == (not group.members and group.initial is None and group.until_ms is None)
        assert group.leader is None or group.leader in group.members
        assert group.unsynced <= group.members.keys()
        names = [member.instance_id for member in group.members.values() if member.instance_id]
        assert len(names) == len({*names})

    def teardown(self) -> None:
        """Once nothing happens any more, all who are there share all partitions."""
        end_ms = self.now_ms + CALM_MS
        while self.now_ms < end_ms:
            for client in self.clients:
                self.act(client)
                self.act(client)
                self.beat(client)
            self.pass_time(HEARTBEAT_MS)
        there = [client for client in self.clients if client.runs]
        assert not self.asked
        assert self.group.phase is (Phase.STABLE if there else Phase.EMPTY)
        assert {client.member_id for client in there} == set(self.group.members)
        if there:
            assert {client.generation for client in there} == {self.group.generation}
            assert sorted(p for client in there for p in client.owns or ()) == list(range(PARTITIONS))


TestGroupsOfClients = GroupsOfClients.TestCase
