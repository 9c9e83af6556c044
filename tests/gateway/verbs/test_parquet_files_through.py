"""The tests of `tests/cli/records/test_parquet_files.py`, through a gateway."""

from cli.records.test_parquet_files import *  # noqa: F403 - its tests and fixtures
