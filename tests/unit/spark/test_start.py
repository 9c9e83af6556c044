"""Ctrl-C while Spark starts is an interrupt, whether Spark gets through or its JVM is ended first."""

from __future__ import annotations

import os
import signal

import pytest

from lithify.errors import EngineUnavailableError
from lithify.spark.session.start import _interrupts_held


@pytest.mark.parametrize("starts", [True, False])
def test_an_interrupt_waits_until_spark_has_started_or_failed(starts):
    before, through = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), _interrupts_held():
        os.kill(os.getpid(), signal.SIGINT)
        through.append("Spark is not left in the middle of its start")
        if not starts:
            raise EngineUnavailableError("Java gateway process exited before sending its port number")
    assert through and signal.getsignal(signal.SIGINT) is before


def test_without_one_an_error_is_itself():
    with pytest.raises(EngineUnavailableError), _interrupts_held():
        raise EngineUnavailableError("no Java")
