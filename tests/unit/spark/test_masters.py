"""A master that Spark does not know, or that nobody listens at, is refused before Spark starts."""

from __future__ import annotations

import socket

import pytest

from lithify.errors import EngineUnavailableError
from lithify.spark.session.masters import check_master
from lithify.spark.session.reasons import start_failure


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[2]", "local[2, 3]", "local-cluster[2,1,1024]", "yarn", "k8s://https://h:1"]
)
def test_those_that_spark_knows_pass(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize("master", ["", "localhost", "sprak://h:1", "spark://h", "spark://", "local[x]", "yarn-client"])
def test_others_are_named_with_the_forms_there_are(master: str) -> None:
    with pytest.raises(EngineUnavailableError, match=r"spark\.master=.* knows no such master .*spark://HOST:PORT"):
        check_master(master)


def test_a_standalone_master_has_to_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:{port}")
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(EngineUnavailableError, match="no Spark master accepts connections there"):
        check_master(f"spark://127.0.0.1:{port}")


PORT_TAKEN = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.net.BindException: Address already in use: Service 'sparkDriver' failed after 0 retries!
	at java.base/sun.nio.ch.Net.bind0(Native Method)
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (PORT_TAKEN, "Service 'sparkDriver' failed.*a port is taken"),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.", "JVM ended while it st"),
        ("[Errno 111] Connection refused", "JVM ended while it started"),
        ("no quota", "no quota.*check spark.master=yarn"),
    ],
)
def test_the_reason_of_a_failed_start_is_one_line(said: str, told: str) -> None:
    error = start_failure(RuntimeError(said), {"spark.master": "yarn"})
    assert "\n" not in str(error)
    with pytest.raises(EngineUnavailableError, match=told):
        raise error
