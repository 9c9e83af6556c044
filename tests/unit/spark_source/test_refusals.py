"""Errors that a worker of Spark reports without a traceback: those of Lithify, and in workers alone."""

from __future__ import annotations

import os

import pytest

from lithify.errors import RefusedError
from lithify.spark_source.refusals import without_traceback


@pytest.mark.parametrize(
    ("error", "in_worker", "hides"),
    [(RefusedError("no"), True, True), (RefusedError("no"), False, False), (ValueError("a defect"), True, False)],
)
def test_only_our_errors_hide_their_traceback_and_only_in_a_worker(error, in_worker, hides, monkeypatch):
    monkeypatch.setattr(os, "environ", {"SPARK_PYTHON_RUNTIME": "PYTHON_WORKER"} if in_worker else {})

    @without_traceback()
    def ask():
        raise error

    with pytest.raises(type(error)):
        ask()
    assert ("SPARK_HIDE_TRACEBACK" in os.environ) == hides
