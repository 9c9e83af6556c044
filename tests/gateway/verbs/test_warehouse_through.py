"""The tests of `tests/cli/warehouse/test_warehouse.py`, through a gateway."""

from cli.warehouse.test_warehouse import *  # noqa: F403 - its tests and fixtures
