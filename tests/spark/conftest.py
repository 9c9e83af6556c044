"""One Spark session for all of these tests, and an engine on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithify.spark.session.start import session_factory
from spark.engines import SLOTS, engine_on
from spark.topics import lake_for
from support.topics.stored_topics import StoredTopic


@pytest.fixture(scope="session")
def session(on_cluster):
    """A local session as a run would make it, whose workers also find what tests support.

    Once a task has not found what another has shuffled, as in one of the tests, a local Spark takes itself for lost. It
    works on, but each of its heartbeats fails, and after 60 of them, in ten minutes, it would end its JVM.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
        conf = {
            "spark.master": f"local[{SLOTS}]",
            "spark.executor.heartbeat.maxFailures": str(10**6),
            "spark.sql.streaming.pollingDelay": "100ms",  # by default a stream that waits asks a hundred times a second
            **on_cluster,
        }
        session = session_factory(None, conf)()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def engine(session):
    return engine_on(lambda: session)


@pytest.fixture
def lake(session, tmp_path):
    return lake_for(session, tmp_path)


@pytest.fixture
def topic(tmp_path):
    return StoredTopic(tmp_path)
