"""Two Pulsars and one Spark session for all tests of a process; every test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lithify.spark.session.start import session_factory
from support.pulsar.clients import send
from support.pulsar.server import PulsarServer, a_pulsar
from support.pulsar.trainings import use_archives


def pytest_sessionstart(session: pytest.Session) -> None:
    """Not in a fixture, as no test's time should run. Processes that share the tests inherit it."""
    if not (session.config.option.collectonly or hasattr(session.config, "workerinput")):
        use_archives()


@pytest.fixture(scope="session")
def pulsar_server() -> Iterator[PulsarServer]:
    """Not to be stopped or killed."""
    with a_pulsar() as server:
        yield server


@pytest.fixture(scope="session")
def mortal_cluster() -> Iterator[PulsarServer]:
    """To be killed. It has transactions too, which no other test needs."""
    with a_pulsar(transactionCoordinatorEnabled="true") as server:
        send(server, server.make_topic(), "x")  # the first topic of a namespace is slow to be readable
        yield server


@pytest.fixture
def mortal_server(mortal_cluster: PulsarServer) -> PulsarServer:
    """It runs, also after a test that has left it killed."""
    if not mortal_cluster.is_running:
        mortal_cluster.start()
    return mortal_cluster


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A local Spark session for rounds and ingests. A process has one: no other may be started or stopped."""
    session = session_factory(None, {"spark.master": "local[2]"})()
    yield session
    session.stop()
