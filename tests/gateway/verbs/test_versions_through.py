"""The tests of `tests/cli/topics/test_versions.py`, through a gateway."""

from cli.topics.test_versions import *  # noqa: F403 - its tests and fixtures
