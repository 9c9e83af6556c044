"""The tests of `tests/cli/rounds/test_cuts.py`, through a gateway."""

from cli.rounds.test_cuts import *  # noqa: F403 - its tests and fixtures
