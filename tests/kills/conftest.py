"""`LITHIFY_KILLS=100 pytest tests/kills`: how many processes of each verb are killed."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def kills() -> int:
    return int(os.environ.get("LITHIFY_KILLS", "6"))
