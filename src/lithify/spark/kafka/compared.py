"""How copies of Kafka's logs continue, by what both sides have: offsets, leader epochs, and last records (C72)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lithify.model.sources.source import Signs, SourceLog
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.copies.copy_continuation import (
    CopyContinuation,
    SourceWasCut,
    copy_continuations,
    cuts_by_earlier,
    cuts_by_records,
    earlier_to_compare,
    records_to_compare,
    unproven,
    with_cuts,
)

Ranges = Mapping[int, tuple[int, int]]
AllSigns = Mapping[int, Mapping[int, Signs]]
"""By partition and offset."""
CopiedSigns = Callable[[TopicState, Ranges], AllSigns]
"""The signs of the records of a copy, in these ranges of offsets."""


def compared(
    copy: TopicState,
    logs: Mapping[int, SourceLog],
    cuts: Mapping[int, SourceWasCut],
    theirs: Callable[[Ranges], AllSigns],
    ours: CopiedSigns,
) -> Mapping[int, CopyContinuation]:
    """By partition. `cuts` are what epochs say, and `theirs` the signs of the source. Raises what `theirs` raises."""
    asked = records_to_compare(copy, logs)
    there = theirs({p: (at, at + 1) for p, at in asked.items()})
    lasts = {p: signs[asked[p]] for p, signs in there.items() if signs}
    earlier = earlier_to_compare(copy, logs, {p: at for p, at in asked.items() if p not in lasts})
    others = cuts_by_earlier(copy, ours(copy, earlier), theirs(earlier))
    all_cuts = {**cuts_by_records(copy, lasts), **others, **unproven(copy, cuts, lasts)}
    return with_cuts(copy_continuations(copy, logs), all_cuts)
