"""`LITHIFY_KILLS=1000 pytest tests/kills`: how many processes are killed.

Most are children of a program that is warm already; some are whole programs, Spark and all.
"""

from __future__ import annotations

import os

import pytest

WHOLE_PROGRAMS = 20
"""One in so many kills ends a producer, and one a round, with the programs as people start them."""


@pytest.fixture(scope="session")
def kills() -> int:
    return int(os.environ.get("LITHIFY_KILLS", "60"))


@pytest.fixture
def whole_programs(kills: int) -> int:
    """Kills of whole programs, for each of the two tests that have any."""
    return max(1, kills // WHOLE_PROGRAMS)


@pytest.fixture
def children(kills: int) -> int:
    """Kills that are left for children."""
    return kills - 2 * max(1, kills // WHOLE_PROGRAMS)
