"""A ratio that is none is refused in words of ours."""

from __future__ import annotations

import pytest

from lithify.errors import InvalidSettingError
from lithify.model.settings.topic_settings import settings_of

NAME = "min.cleanable.dirty.ratio"


@pytest.mark.parametrize(
    ("text", "why"),
    [("1%", "write 1% as 0.01"), ("50 %", "write 1% as 0.01"), ("half", "not a number"), ("2", "range")],
)
def test_a_ratio_that_is_none_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidSettingError, match=why) as refused:
        settings_of({NAME: text})
    assert "could not convert" not in str(refused.value)
