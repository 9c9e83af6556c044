"""Why Spark does not start: a master that is none is refused before, other settings are named after."""

from __future__ import annotations

import socket

import pytest

from lithify.errors import EngineUnavailableError
from lithify.spark.session.masters import check_master
from lithify.spark.session.reasons import start_failure
from lithify.spark.tasks import job_errors


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[2]", "local[2, 3]", "local-cluster[2,1,1024]", "yarn", "k8s://https://h:1"]
)
def test_those_that_spark_knows_pass(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize("master", ["", "localhost", "sprak://h:1", "spark://h", "spark://", "local[x]", "yarn-client"])
def test_others_are_named_with_the_forms_there_are(master: str) -> None:
    with pytest.raises(
        EngineUnavailableError, match=r"spark\.master=.* does not support such a master .*spark://HOST:PORT"
    ):
        check_master(master)


def test_a_standalone_master_has_to_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:{port}")
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(EngineUnavailableError, match="no Spark master accepts connections there"):
        check_master(f"spark://127.0.0.1:{port}")


def not_bound(why: str, service: str, where: str) -> str:
    """What Py4J says, shortened."""
    return f"""An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.net.BindException: {why}: Service '{service}' failed after 0 retries ({where})! Consider explicitly setting it.
\tat java.base/sun.nio.ch.Net.bind0(Native Method)
"""


TAKEN, ELSEWHERE = "Address already in use", "bind(..) failed with error(-99): Cannot assign requested address"
DRIVER, BLOCKS = "sparkDriver", "org.apache.spark.network.netty.NettyBlockTransferService"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            not_bound(TAKEN, DRIVER, "starting from 7001"),
            r"port 7001 is in use .set spark\.driver\.port to a free port",
        ),
        (not_bound(TAKEN, BLOCKS, "starting from 7001"), r"set spark\.driver\.blockManager\.port to a free port"),
        (not_bound(TAKEN, DRIVER, "on a random free port"), r"no port for spark\.driver\.port is free"),
        ("java.net.BindException: Address already in use", r"Address already in use .a port is in use"),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.", "JVM ended while it st"),
        ("[Errno 111] Connection refused", "JVM ended while it started"),
        ("Error while sending or receiving", "JVM ended while it started"),
        ("no quota", "no quota.*check spark.master=yarn"),
        ("Cannot call methods on a stopped SparkContext.\nThis stopped", "the cluster's master ended the application"),
    ],
)
def test_the_reason_of_a_failed_start_is_one_line(said: str, told: str) -> None:
    error = start_failure(RuntimeError(said), {"spark.master": "yarn"})
    assert "\n" not in str(error)
    with pytest.raises(EngineUnavailableError, match=told):
        raise error


@pytest.mark.parametrize("why", [not_bound(ELSEWHERE, DRIVER, "on a random free port"), "UnresolvedAddressException"])
def test_an_address_of_another_machine_is_named_with_its_setting(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "203.0.113.1")
    for conf, name, address in (
        (
            {"spark.driver.host": "h", "spark.driver.bindAddress": "203.0.113.9"},
            "spark.driver.bindAddress",
            "203.0.113.9",
        ),
        ({"spark.driver.host": "h"}, "spark.driver.host", "h"),
        ({}, "SPARK_LOCAL_IP", "203.0.113.1"),
    ):
        error = start_failure(RuntimeError(why), conf)
        assert (
            error.message
            == f"Spark did not start: this machine does not have the address {address} at which it should listen"
        )
        assert error.hint == f"set {name} to an address of this machine"
    monkeypatch.delenv("SPARK_LOCAL_IP")
    assert "set spark.driver.bindAddress" in start_failure(RuntimeError(why), {}).hint


def test_the_port_of_the_web_interface_is_looked_at_where_the_jvm_says_nothing() -> None:
    ended = RuntimeError("Error while sending or receiving")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        conf = {"spark.ui.port": port, "spark.port.maxRetries": "0"}
        assert start_failure(ended, conf).message == (
            f"Spark did not start: port {port} of its web interface is in use"
        )
        for other in ({"spark.ui.enabled": "false"}, {"spark.port.maxRetries": "16"}, {"spark.ui.port": "0"}):
            assert "its JVM ended" in start_failure(ended, conf | other).message
    assert "its JVM ended" in start_failure(ended, conf).message


@pytest.mark.parametrize(
    "said",
    [
        "Job aborted due to stage failure: Master removed our application: FAILED",
        "Job 0 cancelled because SparkContext was shut down",
    ],
)
def test_a_job_whose_application_the_master_ended_says_so_and_where_its_log_is(said: str) -> None:
    with (
        pytest.raises(
            EngineUnavailableError, match=r"the cluster's master ended .*executors.*stderr.*master's web page"
        ),
        job_errors(),
    ):
        raise RuntimeError(said)
