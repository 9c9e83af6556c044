"""Which files `verify` opens for a proof: those whose records can be wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.finding import TombstoneCount
from lithify.model.segment import Mask
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


def test_a_file_with_a_mask_and_without_is_compared_twice() -> None:
    """Side by side the backlog has all of its records, the view those that are left."""
    masked = replace(KEPT, records=4, mask=Mask("mask", 100, 1))
    count = TombstoneCount(0, 10, (), empty_is_tombstone=False)
    proof = Proof(0, True, (2, 2), (Source(KEPT),), (masked,), empty_is_tombstone=False, known_up_to=0)
    for whole in ([proof], []):
        files = inspected(whole, [KEPT, masked], {masked.id: count})
        assert [(file.segment, file.count) for file in files] == [(KEPT, None), (masked, count)]
    (backlog, view) = inspected([proof], [KEPT, masked], {})
    assert [(m.before, m.after) for m in (*backlog.memberships, *view.memberships)] == [(True, False)]
    of_before = Proof(0, True, (1, 2), (Source(masked),), (), empty_is_tombstone=False)
    assert [file.segment for file in inspected([of_before], [KEPT], {}) if file.memberships] == [masked]
