"""The tests of `tests/cli/records/test_points.py`, through a gateway."""

from cli.records.test_points import *  # noqa: F403 - its tests and fixtures
