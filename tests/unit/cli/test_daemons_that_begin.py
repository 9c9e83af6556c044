"""A signal before a daemon has begun ends it in order, an outage delays it, and any other error ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lithify.cli.cleaner.run import begun_daemon
from lithify.cli.terminal import starting
from lithify.cli.terminal.starting import TellBeginning
from lithify.daemons.stop import Stop
from lithify.errors import CoordinationError, LithifyError, RefusedError, WarehouseError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Idle:
    """A daemon that does nothing."""

    def __init__(self) -> None:
        self.stop = Stop()

    def run(self, *, once: bool) -> bool:
        return once


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def told() -> list[tuple[str, dict[str, Any]]]:
    return []


@pytest.fixture
def tell(told: list[tuple[str, dict[str, Any]]]) -> TellBeginning:
    return lambda kind, facts: told.append((kind, dict(facts)))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MAX_PAUSE_S", 0.01)


def outage(kind: type[LithifyError] = WarehouseError) -> LithifyError:
    error = kind("catalog prod cannot be reached: Connection refused", hint="check that it runs")
    error.is_outage = True
    return error


class Begins:
    """Fails with these errors, one after the other, and then begins."""

    def __init__(self, *errors: LithifyError) -> None:
        self.errors = list(errors)

    def __call__(self) -> Idle:
        if self.errors:
            raise self.errors.pop(0)
        return Idle()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_it_begins_is_told_and_one_after_it_stops_the_daemon(
    number: signal.Signals, told: list[tuple[str, dict[str, Any]]], tell: TellBeginning
) -> None:
    def interrupted() -> Idle:
        os.kill(os.getpid(), number)
        raise AssertionError("it has gone on")

    assert begun_daemon(interrupted, tell, once=False) is None
    assert told == [("stopped", {"reason": number.name})]
    daemon = begun_daemon(Idle, tell, once=False)
    assert daemon is not None
    os.kill(os.getpid(), number)
    assert daemon.stop.asked.wait(10)
    assert (daemon.stop.reason, len(told)) == (number.name, 1)


def test_a_second_signal_does_not_end_what_is_told_of_the_first(told: list[tuple[str, dict[str, Any]]]) -> None:
    def press() -> Idle:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("it has gone on")

    def pressed(kind: str, facts: Mapping[str, Any]) -> None:
        for number in SIGNALS:
            os.kill(os.getpid(), number)
        told.append((kind, dict(facts)))

    assert begun_daemon(press, pressed, once=False) is None
    assert told == [("stopped", {"reason": "SIGINT"})]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_in_a_destructor_stops_it_all_the_same(
    told: list[tuple[str, dict[str, Any]]], tell: TellBeginning
) -> None:
    """Python prints what a handler raises there, and goes on: with what begins, or with the next try of it."""

    class Struck:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    def begin(*errors: LithifyError) -> Idle:
        Struck()
        return Begins(*errors)()

    for errors in ((), (outage(),)):
        assert begun_daemon(lambda errors=errors: begin(*errors), tell, once=False) is None
    assert [kind for kind, _ in told] == ["stopped", "trouble", "stopped"]


def test_an_outage_is_waited_for_and_told_once_and_at_its_end(
    told: list[tuple[str, dict[str, Any]]], tell: TellBeginning
) -> None:
    begins = Begins(*(outage() for _ in range(20)), *(outage(CoordinationError) for _ in range(20)))

    assert begun_daemon(begins, tell, once=False) is not None

    (began, trouble), (ended, recovered) = told
    text = "catalog prod cannot be reached: Connection refused; waiting until it answers"
    assert (began, trouble) == ("trouble", {"error": text, "error_code": "Warehouse"})
    assert (ended, recovered["what"]) == ("recovered", starting.WHAT)
    assert set(recovered) == {"what", "duration_ms"}


def test_what_begins_at_once_tells_nothing(told: list[tuple[str, dict[str, Any]]], tell: TellBeginning) -> None:
    assert begun_daemon(Idle, tell, once=False) is not None
    assert told == []


@pytest.mark.parametrize("wrong", [WarehouseError("password authentication failed"), RefusedError("no such catalog")])
@pytest.mark.parametrize("outages", [0, 3])
def test_what_waiting_cannot_mend_ends_it(
    wrong: LithifyError, outages: int, told: list[tuple[str, dict[str, Any]]], tell: TellBeginning
) -> None:
    begins = Begins(*(outage() for _ in range(outages)), wrong)

    with pytest.raises(type(wrong)) as caught:
        begun_daemon(begins, tell, once=False)

    assert caught.value is wrong
    assert [kind for kind, _ in told] == ["trouble"] * bool(outages)


def test_once_waits_for_no_outage(told: list[tuple[str, dict[str, Any]]], tell: TellBeginning) -> None:
    with pytest.raises(WarehouseError):
        begun_daemon(Begins(outage()), tell, once=True)
    assert told == []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_it_waits_ends_it_in_order(
    number: signal.Signals, told: list[tuple[str, dict[str, Any]]], tell: TellBeginning
) -> None:
    tries = iter(range(10**6))

    def away() -> Idle:
        if next(tries) == 5:
            os.kill(os.getpid(), number)
        raise outage()

    assert begun_daemon(away, tell, once=False) is None
    assert [kind for kind, _ in told] == ["trouble", "stopped"]
    assert told[-1][1] == {"reason": number.name}
