"""Which files `verify` opens for a proof: those whose records can be wrong."""

from __future__ import annotations

import pytest

from lithify.rules.proof.inspection import inspected
from lithify.rules.proof.transition import Proof, Source
from support.builders import a_segment

KEPT = a_segment("kept", 5, 10)


@pytest.mark.parametrize(
    ("before", "after", "matters"),
    [
        ((Source(KEPT),), (KEPT,), False),  # the same file, above everything that rules judge
        ((Source(KEPT, 5),), (KEPT,), False),
        ((Source(KEPT, 6),), (KEPT,), True),  # some of its records were not there before
        ((Source(KEPT),), (), True),
        ((), (KEPT,), True),
    ],
)
def test_a_file_that_both_versions_have_is_not_compared(
    before: tuple[Source, ...], after: tuple, matters: bool
) -> None:
    proof = Proof(0, False, (1, 2), before, after, empty_is_tombstone=False)
    (file,) = inspected([proof], [KEPT], {})
    assert bool(file.memberships) is matters
