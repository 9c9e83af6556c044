"""Clients of Kafka find truncations by themselves: none keeps a record that was cut, none passes over another one.

The client here does what Java's and librdkafka's do. It fetches with the leader's epoch that it knows. When that is
refused, it asks for the end of the epoch in which it has read, and goes back there if that is below it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_server.logs.leader_epochs import UNDEFINED, epoch_end
from lithify.model.names import LogId, TopicName
from lithify.model.topic.log import TRUNCATIONS_KEPT, LogState
from lithify.rules.lifecycle.cuts import Cut, truncated, truncation

LOG = LogId(TopicName("default", "t"), 0)


def test_an_epoch_ends_at_the_lowest_cut_since() -> None:
    log = LogState(0, log_end_offset=14, generation=2, truncated=(5, 9))
    assert [epoch_end(log, epoch, 0) for epoch in (-1, 0, 1, 2, 3)] == [UNDEFINED, (0, 5), (1, 9), (2, 14), UNDEFINED]


def test_a_cut_below_the_log_start_leads_to_the_log_start() -> None:
    log = LogState(0, log_start_offset=7, log_end_offset=14, generation=1, truncated=(5,))
    assert epoch_end(log, 0, 7) == (0, 7)


def test_of_a_cut_that_is_forgotten_all_is_read_again() -> None:
    cuts = tuple(range(20, 20 + TRUNCATIONS_KEPT))
    log = LogState(0, log_start_offset=3, log_end_offset=40, generation=TRUNCATIONS_KEPT + 1, truncated=cuts)
    assert [epoch_end(log, 0, 3), epoch_end(log, 1, 3)] == [(0, 3), (1, 20)]


@dataclass
class Client:
    """What it has read, by offset, and the last epoch in which it has."""

    position: int = 0
    read_in: int = -1
    leader_epoch: int = 0
    has: dict[int, int] = field(default_factory=dict)

    def fetch(self, log: LogState, records: dict[int, int], most: int) -> None:
        if self.leader_epoch > log.generation:
            return  # UNKNOWN_LEADER_EPOCH: it tries again later
        if self.leader_epoch < log.generation:
            self.leader_epoch = log.generation
            self.validate(log)
        if not log.log_start_offset <= self.position <= log.log_end_offset:
            self.position = log.log_start_offset
            return
        for offset in sorted(offset for offset in records if offset >= self.position)[:most]:
            self.has[offset] = records[offset]
            self.position, self.read_in = offset + 1, log.generation

    def validate(self, log: LogState) -> None:
        if self.read_in < 0:
            return
        epoch, end = epoch_end(log, self.read_in, log.log_start_offset)
        assert epoch <= self.read_in and end >= 0
        if end < self.position:
            self.position, self.read_in = end, epoch


Version = tuple[LogState, dict[int, int]]
steps = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
    st.tuples(st.just("trim"), st.integers(0, 12)),
    st.tuples(st.just("fetch"), st.integers(1, 6), st.sampled_from([0, 0, 1, 2])),
)


@given(st.lists(steps, max_size=60))
def test_a_client_ends_with_the_records_that_are_there(story: list[tuple[str, ...]]) -> None:
    client, numbers = Client(), count()
    versions: list[Version] = [(LogState(0), {})]
    for verb, amount, *behind in story:
        log, records = versions[-1]
        match verb:
            case "append":
                new = {log.log_end_offset + n: next(numbers) for n in range(amount)}
                versions.append((replace(log, log_end_offset=log.log_end_offset + amount), records | new))
            case "truncate":
                to = max(log.log_start_offset, log.log_end_offset - amount)
                if to < log.log_end_offset:
                    how = truncation(LOG, log, to, below_compacted=True)
                    versions.append((truncated(log, how, Cut((), None)), {o: n for o, n in records.items() if o < to}))
            case "trim":
                start = min(log.log_end_offset, log.log_start_offset + amount)
                left = {offset: number for offset, number in records.items() if offset >= start}
                versions.append((replace(log, log_start_offset=start, first_dirty_offset=start), left))
            case "fetch":  # perhaps of a gateway that has not looked for a while
                client.fetch(*versions[max(0, len(versions) - 1 - behind[0])], amount)
    log, records = versions[-1]
    for _ in range(3):
        client.fetch(log, records, 1_000)
    assert client.position == log.log_end_offset
    assert {offset: client.has.get(offset) for offset in records} == records
