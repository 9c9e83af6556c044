"""The tests of `tests/cli/rounds/test_side_by_side.py`, through a gateway."""

from cli.rounds.test_side_by_side import *  # noqa: F403 - its tests and fixtures
