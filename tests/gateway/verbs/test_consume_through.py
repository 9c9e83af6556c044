"""The tests of `tests/cli/records/test_consume.py`, through a gateway."""

from cli.records.test_consume import *  # noqa: F403 - its tests and fixtures
