"""The tests of `tests/cli/records/test_produce.py`, through a gateway."""

from cli.records.test_produce import *  # noqa: F403 - its tests and fixtures
