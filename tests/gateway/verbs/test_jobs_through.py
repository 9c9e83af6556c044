"""The tests of `tests/cli/gateway/test_jobs.py`, through a gateway."""

from cli.gateway.test_jobs import *  # noqa: F403 - its tests and fixtures
