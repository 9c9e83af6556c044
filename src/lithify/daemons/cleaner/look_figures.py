"""What looks have found of each topic, in figures: for metrics, without a read of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from threading import Lock

from lithify.metrics.figures import UNREADABLE, TopicFigures
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.rules.schedule.assessment import Assessment
from lithify.service.look.assessed_topic import AssessedTopic


@dataclass(slots=True)
class LookFigures:
    """One small entry for each topic; several threads may use it."""

    _topics: dict[TopicName, TopicFigures] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def note(self, name: TopicName, figures: TopicFigures) -> None:
        with self._lock:
            self._topics[name] = figures

    def unreadable(self, name: TopicName) -> None:
        """The topic could not be read."""
        self.note(name, UNREADABLE)

    def keep(self, names: Collection[TopicName]) -> None:
        """Forgets all other topics."""
        with self._lock:
            self._topics = {name: figures for name, figures in self._topics.items() if name in names}

    def all(self) -> dict[str, TopicFigures]:
        with self._lock:
            topics = dict(self._topics)
        return {str(name): figures for name, figures in topics.items()}


def topic_figures(
    topic: AssessedTopic, failures: Mapping[int, LogFailure], resting: Collection[int], now_ms: int
) -> TopicFigures:
    """The figures of a topic with these failures by partition. A log that rests is not due, whatever its verdict."""
    state = topic.state
    awake = [a for partition, a in topic.assessments.items() if partition not in resting]
    overdue_ms = max((a.verdict.overdue_ms for a in awake), default=0)
    quarantined = [partition for partition, failure in failures.items() if failure.quarantined]
    compacted = topic.assessments if state.takes_rounds and state.round_settings.compacts else {}
    dirt = [assessment.dirtiness for assessment in compacted.values()]
    return TopicFigures(
        dirty_bytes=sum(d.dirty_bytes for d in dirt),
        dirty_ratio=round(max((d.ratio for d in dirt), default=0.0), 4),
        dirty_since_ms=min((d.oldest_dirty_timestamp_ms for d in dirt if d.oldest_dirty_timestamp_ms), default=None),
        overdue_since_ms=now_ms - overdue_ms if overdue_ms else None,
        due_logs=sum(a.verdict.due for a in awake),
        quarantined_logs=len(quarantined),
        quarantined_bytes=sum(_dirty_bytes(compacted, partition) for partition in quarantined),
    )


def _dirty_bytes(assessments: Mapping[int, Assessment], partition: int) -> int:
    assessment = assessments.get(partition)
    return 0 if assessment is None else assessment.dirtiness.dirty_bytes
