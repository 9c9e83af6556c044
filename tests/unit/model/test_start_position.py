"""Where a reader may start (C2, C37)."""

from __future__ import annotations

import pytest

from lithify.errors import OffsetOutOfRangeError
from lithify.model.names import LogId, TopicName
from lithify.model.start_position import checked_offset

LOG = LogId(TopicName("default", "orders"), 3)


@pytest.mark.parametrize("offset", [5, 7, 9])
def test_every_offset_from_start_to_end_is_a_place_to_start(offset):
    """C2, C37: also one whose record is gone, and the end itself."""
    assert checked_offset(LOG, 5, 9, offset) == offset


@pytest.mark.parametrize("offset", [4, 10, -1])
def test_an_offset_outside_is_an_error_that_names_both_ends(offset):
    """C37."""
    with pytest.raises(OffsetOutOfRangeError, match=rf"orders-3: offset {offset} is outside of \[5, 9\]"):
        checked_offset(LOG, 5, 9, offset)
