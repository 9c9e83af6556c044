"""The tests of `tests/cli/topics/test_alter.py`, through a gateway."""

from cli.topics.test_alter import *  # noqa: F403 - its tests and fixtures
