"""The tests of `tests/cli/terminal/test_overview.py`, through a gateway."""

from cli.terminal.test_overview import *  # noqa: F403 - its tests and fixtures
