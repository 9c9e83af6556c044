"""The tests of `tests/cli/rounds/test_status.py`, through a gateway."""

from cli.rounds.test_status import *  # noqa: F403 - its tests and fixtures
