"""The tests of `tests/cli/topics/test_topics.py`, through a gateway."""

from cli.topics.test_topics import *  # noqa: F403 - its tests and fixtures
