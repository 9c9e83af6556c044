"""The tests of `tests/cli/rounds/test_compact.py`, through a gateway."""

from cli.rounds.test_compact import *  # noqa: F403 - its tests and fixtures
