"""The program, which asks whatever gateway a test names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lithify.gateway.client import jobs
from support.processes.in_process import Outcome, Program


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(jobs, "RESUME_PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr(jobs, "POLL_S", 0.01)
    return Program(tmp_path)
