"""`pytest tests/scenarios --update` writes the scenarios anew; read the difference before you commit it."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the output of every scenario anew")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    wanted = bool(request.config.getoption("--update", default=False))
    if wanted and os.environ.get("CI"):
        pytest.exit("--update accepts whatever comes out; it is not for CI", returncode=2)
    return wanted
