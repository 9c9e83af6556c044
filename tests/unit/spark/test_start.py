"""What a session is started with, and Ctrl-C meanwhile: an interrupt, whether or not Spark gets through."""

from __future__ import annotations

import os
import signal

import pytest

from lithify.errors import EngineUnavailableError
from lithify.spark.session.launch import interrupts_held, own_settings


@pytest.mark.parametrize("starts", [True, False])
def test_an_interrupt_waits_until_spark_has_started_or_failed(starts):
    before, through = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), interrupts_held():
        os.kill(os.getpid(), signal.SIGINT)
        through.append("Spark is not left in the middle of its start")
        if not starts:
            raise EngineUnavailableError("Java gateway process exited before sending its port number")
    assert through and signal.getsignal(signal.SIGINT) is before


def test_without_one_an_error_is_itself():
    with pytest.raises(EngineUnavailableError), interrupts_held():
        raise EngineUnavailableError("no Java")


def test_the_driver_of_a_local_session_is_for_this_machine_alone_and_that_of_a_cluster_is_not():
    """Executors on other machines would look for it on their own."""
    for local in ({}, {"spark.master": "local[2]"}):
        assert (
            own_settings(local)["spark.driver.host"] == own_settings(local)["spark.driver.bindAddress"] == "127.0.0.1"
        )
    cluster = own_settings({"spark.master": "spark://host:7077"})
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.authenticate"} & cluster.keys()
    assert own_settings({"spark.driver.host": "elsewhere"})["spark.driver.host"] == "elsewhere"
