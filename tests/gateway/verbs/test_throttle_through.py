"""The tests of `tests/cli/rounds/test_throttle.py`, through a gateway."""

from cli.rounds.test_throttle import *  # noqa: F403 - its tests and fixtures
