"""Groups that the coordinator assigns, under random schedules: no partition is ever read by two members."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.modern.assignor import NOTHING, Parts, assigned
from lithify.kafka_server.groups.modern.beats import Beat, beaten, due_ms, elapsed, retargeted
from lithify.kafka_server.groups.modern.group import ConsumerGroup

TOPIC_A, TOPIC_B = bytes([1] * 16), bytes([2] * 16)
LAYOUTS = [{"a": (TOPIC_A, 5)}, {"a": (TOPIC_A, 5), "b": (TOPIC_B, 3)}, {"a": (TOPIC_A, 8), "b": (TOPIC_B, 3)}]
SESSION_MS, REBALANCE_MS = 45_000, 20_000
clients = st.integers(0, 4)


@dataclass
class Client:
    """As Kafka's clients do. It reads `owned`, and gives up what it is told to when it is asked to act."""

    number: int
    static: bool
    topics: frozenset[str] = frozenset({"a"})
    runs: bool = False
    lives: int = 0
    epoch: int = 0
    owned: Parts = NOTHING
    to_have: Parts = NOTHING
    says_all: bool = True
    heard_ms: int = 0

    @property
    def member_id(self) -> str:
        return f"client-{self.number}-{self.lives}"

    @property
    def name(self) -> str | None:
        return f"static-{self.number}" if self.static else None

    def start(self) -> None:
        if self.runs or not self.static:
            self.lives += 1
        self.runs = True
        self.lost()

    def settle(self) -> None:
        self.owned, self.says_all = self.to_have, True

    def lost(self) -> None:
        self.epoch, self.owned, self.to_have, self.says_all = 0, NOTHING, NOTHING, True


class ConsumersOfAGroup(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.group, self.layout, self.now_ms = ConsumerGroup(), LAYOUTS[0], 0
        self.clients = [Client(n, static=n >= 3) for n in range(5)]

    def beat(self, client: Client, *, answered: bool = True, epoch: int | None = None) -> None:
        """A heartbeat. Without an answer the client says all again."""
        if not client.runs:
            return
        if self.now_ms - client.heard_ms > SESSION_MS:
            client.lost()  # it knows that it was silent for too long
        said = client.says_all
        beat = Beat(
            client.member_id,
            client.epoch if epoch is None else epoch,
            client.name,
            None,
            "client",
            "/host",
            REBALANCE_MS,
            client.topics if said else None,
            None,
            frozenset(),
            None,
            client.owned if said else None,
        )
        self.group, told = beaten(self.group, beat, self.layout, self.now_ms)
        if not answered:
            client.says_all = True
            return
        match told.error:
            case Code.NONE:
                client.heard_ms, client.says_all = self.now_ms, False
                client.epoch = told.epoch
                if told.assigned is not None:
                    client.to_have = told.assigned
            case Code.UNKNOWN_MEMBER_ID | Code.FENCED_MEMBER_EPOCH:
                client.lost()
            case Code.UNRELEASED_INSTANCE_ID | Code.FENCED_INSTANCE_ID:
                client.runs = False
            case other:
                raise AssertionError(other)

    def pass_time(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (due := due_ms(self.group)) is not None and due <= end_ms:
            self.now_ms = max(self.now_ms, due)
            self.group = elapsed(self.group, self.layout, self.now_ms)
        self.now_ms = end_ms
        for client in self.clients:
            if client.runs and self.now_ms - client.heard_ms >= REBALANCE_MS:
                client.lost()  # a client that gets no answer for so long reads no more

    @rule(number=clients, answered=st.booleans(), says_all=st.booleans())
    def heartbeat(self, number: int, answered: bool, says_all: bool) -> None:
        self.clients[number].says_all |= says_all
        self.beat(self.clients[number], answered=answered)

    @rule(says_all=st.booleans())
    def all_say_what_they_have(self, says_all: bool) -> None:
        for client in self.clients:
            client.says_all |= says_all
            self.beat(client)

    @rule(number=clients)
    def give_up_and_begin(self, number: int) -> None:
        """It reads no more what it was told to give up, and begins with what it got."""
        self.clients[number].settle()

    @rule()
    def all_beat(self) -> None:
        for _ in range(3):
            for client in self.clients:
                self.beat(client)
                client.settle()

    @rule(number=clients)
    def start(self, number: int) -> None:
        self.clients[number].start()
        self.beat(self.clients[number])

    @rule(number=clients)
    def crash(self, number: int) -> None:
        self.clients[number].runs = False

    @rule(number=clients)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        self.beat(client, answered=False, epoch=-2 if client.static else -1)
        client.runs = False
        client.lost()

    @rule(number=clients, topics=st.sets(st.sampled_from(["a", "b"]), min_size=1))
    def subscribe(self, number: int, topics: set[str]) -> None:
        self.clients[number].topics, self.clients[number].says_all = frozenset(topics), True

    @rule(layout=st.sampled_from(LAYOUTS))
    def topics_change(self, layout: dict[str, tuple[bytes, int]]) -> None:
        self.layout = layout
        self.group = retargeted(self.group, layout)

    @rule(ms=st.sampled_from([1_000, 8_000, 50_000]))
    def wait(self, ms: int) -> None:
        self.pass_time(ms)

    @invariant()
    def no_partition_has_two_members(self) -> None:
        held = [part for m in self.group.members.values() for part in m.assigned | m.revoking]
        assert len(held) == len({*held})

    @invariant()
    def a_target_is_whole(self) -> None:
        assert self.group.target.keys() == self.group.members.keys()
        parts = [part for some in self.group.target.values() for part in some]
        assert len(parts) == len({*parts})

    @invariant()
    def nobody_reads_what_another_reads(self) -> None:
        read = [part for client in self.clients if client.runs for part in client.owned]
        assert len(read) == len({*read})

    def teardown(self) -> None:
        """Once nothing happens any more, all who are there have the same epoch, and all partitions."""
        for _ in range(60):
            for client in self.clients:
                self.beat(client)
                client.settle()
            self.pass_time(3_000)
        there = [client for client in self.clients if client.runs]
        assert {client.member_id for client in there} == self.group.members.keys()
        assert self.group.phase == ("Stable" if there else "Empty")
        wanted = {name for client in there for name in client.topics if name in self.layout}
        every = {(self.layout[name][0], number) for name in wanted for number in range(self.layout[name][1])}
        assert sorted(every) == sorted(part for client in there for part in client.owned)


TestConsumersOfAGroup = ConsumersOfAGroup.TestCase

PARTS = st.frozensets(st.tuples(st.sampled_from([TOPIC_A, TOPIC_B]), st.integers(0, 9)))


@given(st.dictionaries(st.sampled_from("pqrst"), PARTS), st.dictionaries(st.sampled_from("pqrst"), PARTS))
def test_each_partition_gets_one_member_that_wants_it(wanted: dict[str, Parts], before: dict[str, Parts]) -> None:
    given_out = assigned(wanted, before)
    assert given_out.keys() == wanted.keys()
    parts = [part for some in given_out.values() for part in some]
    assert sorted(parts) == sorted(frozenset().union(*wanted.values()))
    assert all(given_out[member] <= wanted[member] for member in wanted)


@given(PARTS, st.integers(1, 5), st.integers(1, 5))
def test_even_shares_move_no_more_than_they_must(parts: Parts, before: int, after: int) -> None:
    first = assigned({f"m{n}": parts for n in range(before)}, {})
    then = assigned({f"m{n}": parts for n in range(after)}, first)
    sizes = sorted(len(some) for some in then.values())
    assert sizes[-1] - sizes[0] <= 1
    moved = sum(len(then[member] - first.get(member, NOTHING)) for member in then)
    assert moved <= max(len(parts) - sum(min(len(first.get(m, NOTHING)), sizes[0]) for m in then), 0)
