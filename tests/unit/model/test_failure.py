"""What is remembered of a failing log, as JSON and back (C31)."""

from __future__ import annotations

import json

import pytest

from lithify.model.failure import LogFailure

FAILURE = LogFailure(3, 1_000, 2_000, 3_000, "s3://bucket/a ∅: missing", quarantined=True)


def test_it_comes_back_as_it_was():
    assert LogFailure.from_json(json.loads(json.dumps(FAILURE.to_json()))) == FAILURE


def test_what_a_later_version_wrote_is_passed_over():
    assert LogFailure.from_json({**FAILURE.to_json(), "cause": "unknown"}) == FAILURE


def test_what_an_earlier_version_did_not_write_has_to_have_a_default():
    kept = {name: value for name, value in FAILURE.to_json().items() if name != "quarantined"}
    assert not LogFailure.from_json(kept).quarantined
    with pytest.raises(TypeError, match="error"):
        LogFailure.from_json({name: value for name, value in kept.items() if name != "error"})
