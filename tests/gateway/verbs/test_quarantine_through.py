"""The tests of `tests/cli/rounds/test_quarantine.py`, through a gateway."""

from cli.rounds.test_quarantine import *  # noqa: F403 - its tests and fixtures
