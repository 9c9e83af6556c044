"""One Pulsar and one Spark session for all tests of a process; every test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lithify.spark.session.start import session_factory
from support.pulsar.server import PulsarServer, a_pulsar
from support.pulsar.trainings import use_archives


def pytest_sessionstart(session: pytest.Session) -> None:
    """Not in a fixture, as no test's time should run. Processes that share the tests inherit it."""
    if not (session.config.option.collectonly or hasattr(session.config, "workerinput")):
        use_archives()


@pytest.fixture(scope="session")
def pulsar_server() -> Iterator[PulsarServer]:
    """Not to be stopped or killed: tests that do have one of their own."""
    with a_pulsar() as server:
        yield server


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A local Spark session for rounds and ingests. A process has one: no other may be started or stopped."""
    session = session_factory(None, {"spark.master": "local[2]"})()
    yield session
    session.stop()
