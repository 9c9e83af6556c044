"""The tests of `tests/cli/records/test_produce_from_pipes.py`, through a gateway."""

from cli.records.test_produce_from_pipes import *  # noqa: F403 - its tests and fixtures
