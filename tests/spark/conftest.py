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
def session():
    """A local session as a run would make it, whose workers also find what tests support."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
        session = session_factory(None, {"spark.master": f"local[{SLOTS}]"})()
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
