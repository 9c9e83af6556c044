"""What `publish` and `hydrate` say on their way, and what they do about a cluster that fails them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lithify.errors import BrokerError, UnusableEnvironmentError
from lithify.hydration.filling import Turn
from lithify.hydration.rows import BusyError
from lithify.kafka.pulse import FAILURES, Retries
from lithify.ports.source import StopAsked
from lithify.service.ingest.system_outages import QUIET_MS
from lithify.service.snapshot.consumer_narration import PROGRESS_MS, FollowedLog, KafkaNote, Narration
from lithify.testing.fake_clock import FakeClock


class Told:
    """A narration on a clock of its own, and its notes."""

    def __init__(self) -> None:
        self.notes: list[KafkaNote] = []
        self.clock = FakeClock()
        self.narration = Narration("orders", "latest", "published", self.clock, self.notes.append)

    def said(self) -> list[str]:
        texts = [note.text for note in self.notes]
        self.notes.clear()
        return texts


def logs(*lags: int) -> tuple[FollowedLog, ...]:
    return tuple(FollowedLog(partition, 5, 5 + lag) for partition, lag in enumerate(lags))


@pytest.mark.parametrize(
    "at, new, text",
    [
        (logs(2), True, "begins, lag 2 offsets"),
        (logs(1), False, "continues at offset 5, lag 1 offset"),
        (logs(1, 1_000), False, "continues, lag 1,001 offsets"),
    ],
)
def test_where_it_begins_is_said_once(at: tuple[FollowedLog, ...], new: bool, text: str) -> None:
    told = Told()
    for _ in range(2):  # again after an outage
        told.narration.begins(at, new=new)
    (note,) = told.notes
    assert note.to_json() == {
        "event": "begins",
        "text": f"orders → latest: {text}",
        "topic": "orders",
        "to": "latest",
        "logs": [
            {"partition": log.partition, "offset": 5, "end_offset": log.end_offset, "lag": log.end_offset - 5}
            for log in at
        ],
    }


def test_progress_is_said_now_and_then_and_leaves_no_record_out() -> None:
    told = Told()
    for records in (10, 20, 0):
        told.narration.progress(records, lambda: logs(7))
    assert told.said() == []
    told.clock.advance(PROGRESS_MS)
    told.narration.progress(0, lambda: logs(7))
    assert told.said() == ["orders → latest: 30 records published, lag 7 offsets"]
    told.clock.advance(PROGRESS_MS)
    told.narration.progress(0, lambda: logs(7))
    assert told.said() == [], "nothing since"
    told.narration.progress(1, lambda: logs(0))
    assert told.said() == ["orders → latest: 1 record published, lag 0 offsets"]


def test_that_it_waits_is_said_once_in_a_while() -> None:
    told = Told()
    waiting = "orders → latest: everything is published; waiting for new records"
    busy = "orders → latest: another program has it; waiting for it"
    for _ in range(2):
        for _ in range(3):
            told.narration.waiting(lambda: logs(0))
            told.narration.busy("another program has it")
        assert told.said() == [waiting, busy]
        told.clock.advance(QUIET_MS)


def test_what_was_done_is_said_before_it_waits() -> None:
    told = Told()
    told.narration.progress(5, lambda: logs(0))
    told.narration.waiting(lambda: logs(0))
    told.clock.advance(PROGRESS_MS)
    told.narration.progress(0, lambda: logs(0))
    assert told.said() == [
        "orders → latest: 5 records published, lag 0 offsets",
        "orders → latest: everything is published; waiting for new records",
    ]


@dataclass
class Silence:
    """A pulse that tests give and take."""

    is_silent: bool = False

    def check(self) -> None:
        """Its thread has not ended."""


def test_a_cluster_that_answers_may_fail_so_often_in_a_row() -> None:
    clock, pulse = FakeClock(), Silence()
    retries = Retries(pulse, True, clock, lambda: False)  # type: ignore[arg-type]
    for _ in range(3):
        for _ in range(FAILURES - 1):
            retries.after(BrokerError("no"))
        retries.succeeded()
    for _ in range(FAILURES - 1):
        retries.after(BrokerError("no"))
    with pytest.raises(BrokerError, match="no"):
        retries.after(BrokerError("no"))
    with pytest.raises(BrokerError, match="at once"):
        Retries(pulse, False, clock, lambda: False).after(BrokerError("at once"))  # type: ignore[arg-type]


def test_one_that_is_away_is_waited_for_until_it_answers_or_everything_is_to_end() -> None:
    class Counted(FakeClock):
        slept_s = 0.0

        def sleep(self, seconds: float) -> None:
            self.slept_s += seconds
            pulse.is_silent = self.slept_s < 600

    clock, pulse = Counted(), Silence(is_silent=True)
    retries = Retries(pulse, True, clock, lambda: False)  # type: ignore[arg-type]
    for _ in range(2 * FAILURES):
        clock.slept_s, pulse.is_silent = 0, True
        retries.after(BrokerError("away"))
        assert 600 <= clock.slept_s < 602
    clock.slept_s, pulse.is_silent = 0, True
    Retries(pulse, True, clock, lambda: True).after(BrokerError("away"))  # type: ignore[arg-type]
    assert clock.slept_s < 2


def test_a_file_that_another_program_has_is_waited_for() -> None:
    told, tries = Told(), 0

    def third_time() -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise BusyError("another program has it")
        return "stored"

    def never() -> str:
        raise BusyError("another program has it")

    assert Turn(told.narration, told.clock, lambda: False, None).wait(third_time) == "stored"
    assert [note.event for note in told.notes] == ["busy"]
    with pytest.raises(UnusableEnvironmentError, match="another program has it"):
        Turn(told.narration, told.clock, lambda: False, 30_000).wait(never)
    assert 30_000 <= told.clock.monotonic_ms() < 32_000
    with pytest.raises(StopAsked):
        Turn(told.narration, told.clock, lambda: True, None).wait(never)
