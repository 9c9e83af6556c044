"""How long a broker is waited for that is away, and what is said meanwhile (C50)."""

from __future__ import annotations

import logging

import pytest

from lithify.errors import BrokerError, SubscriptionBusyError, UnknownSourceError
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.patience import LOG, PAUSE_S, WARNING_AFTER_S, retried


class Calls:
    """Fails with `error` until `answers_s`; time passes only in waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception, answers_s: float) -> None:
        self.now_s, self.error, self.answers_s = 0.0, error, answers_s
        monkeypatch.setattr("lithify.waits.deadline.monotonic", lambda: self.now_s)

    def call(self) -> str:
        if self.now_s < self.answers_s:
            raise self.error
        return "an answer"

    def wait(self, seconds: float) -> None:
        assert 0 < seconds <= PAUSE_S
        self.now_s += seconds


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


GONE = TransientBrokerError("no broker at h:1", hint="check the URL")
TOLD = "no broker at h:1; trying again for 25 s (check the URL)"


@pytest.mark.parametrize(
    "error, answers_s, told",
    [
        (GONE, 0, []),
        (GONE, WARNING_AFTER_S, []),
        (GONE, WARNING_AFTER_S + 2, [TOLD]),
        (GONE, 29, [TOLD]),
        (SubscriptionBusyError("a is held"), 6, ["a is held; trying again for 25 s"]),
        (TransientBrokerError("said \x1b[2J"), 6, ["'said \\x1b[2J'; trying again for 25 s"]),
    ],
)
def test_a_wait_that_is_long_is_told_once(monkeypatch, error, answers_s, told):
    calls, heard = Calls(monkeypatch, error, answers_s), Heard()
    LOG.addHandler(heard)
    try:
        assert retried(calls.call, 30, calls.wait) == "an answer"
    finally:
        LOG.removeHandler(heard)
    assert heard.messages == told


def test_it_ends(monkeypatch):
    calls = Calls(monkeypatch, GONE, 31)
    with pytest.raises(BrokerError, match="no broker at h:1, for 30 s") as caught:
        retried(calls.call, 30, calls.wait)
    assert (caught.value.hint, calls.now_s) == (GONE.hint, 30)


def test_what_another_try_does_not_change_is_raised_at_once(monkeypatch):
    calls = Calls(monkeypatch, UnknownSourceError("no topic"), 1)
    with pytest.raises(UnknownSourceError):
        retried(calls.call, 30, calls.wait)
    assert calls.now_s == 0
