"""The tests of `tests/cli/topics/test_streams.py`, through a gateway."""

from cli.topics.test_streams import *  # noqa: F403 - its tests and fixtures
