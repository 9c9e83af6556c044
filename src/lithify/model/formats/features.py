"""Features: what a topic may have that earlier versions of Lithify do not support, by name.

    topic        lithify.features    a version that lacks one of them neither reads nor writes the topic
    warehouse    format.json         which of them its topics may have

`compacted-logs` is a copy of logs from which rounds have removed records. Earlier versions do not support copies: they
would append to it and compact it, and readers of the source could not continue at it. A copy of a log that still has
all of its records needs no feature, whatever its settings are.

`masks` is a topic with a segment that has a mask, or that had one. Earlier versions would read masked records, and
treat the file of a mask as one of their own that nothing references. The feature is never removed, since retained
versions may have masks.
"""

from __future__ import annotations

from collections.abc import Iterable

from lithify.errors import UnsupportedFormatError
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState

COMPACTED_LOGS = "compacted-logs"
MASKS = "masks"
KNOWN_FEATURES = frozenset({COMPACTED_LOGS, MASKS})

TOPIC_FORMAT = 3
"""The format of topics without features. The next commit upgrades a topic of an earlier format to it."""
FEATURES_FORMAT = 4
"""The format of topics with features, which earlier versions of Lithify refuse by its number."""


def needs_compacted_logs(state: TopicState) -> bool:
    """Whether a round has removed a record from a log or from its view, and was not undone.

    What retention, `delete-records` or a truncation removes does not count, nor does a setting.
    """
    return any(_lacks_losers(log) for log in state.logs)


def features_of_copy(state: TopicState) -> tuple[str, ...]:
    """The features that a copy of a topic has to have."""
    compacted = (COMPACTED_LOGS,) if needs_compacted_logs(state) else ()
    return (*compacted, MASKS) if MASKS in state.features else compacted


def features_after(features: tuple[str, ...], edit: TopicEdit) -> tuple[str, ...]:
    """The features after an edit of a topic that has `features`: `masks` from the first mask on."""
    after = features if edit.features is None else edit.features
    masks = (MASKS,) if MASKS in features else features_of((*edit.add, *edit.view_add))
    return tuple(sorted({*after, *masks}))


def features_of(segments: Iterable[Segment]) -> tuple[str, ...]:
    """The features that a topic with these segments has to have."""
    return (MASKS,) if any(segment.mask is not None for segment in segments) else ()


def format_with(features: Iterable[str]) -> int:
    """The format in which a topic with these features is stored."""
    return FEATURES_FORMAT if tuple(features) else TOPIC_FORMAT


def check_known(what: str, features: Iterable[str]) -> None:
    """Raises `UnsupportedFormatError` if `what` has a feature that this version does not support."""
    unknown = sorted(set(features) - KNOWN_FEATURES)
    if unknown:
        raise UnsupportedFormatError(
            f"{what}: it has the feature {unknown[0]}, which this version does not support",
            hint="use a newer Lithify; nothing was changed",
        )


def _lacks_losers(log: LogState) -> bool:
    return log.losers_removed or (log.view is not None and log.view.losers_removed)
