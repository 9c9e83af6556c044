"""The tests of `tests/cli/copies/test_groups.py`, through a gateway."""

from cli.copies.test_groups import *  # noqa: F403 - its tests and fixtures
