"""Streams: what `stream info`, `list`, `edit` and `delete` print. Values are text, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.settings.inheritance import Origin
from lithify.reports.changed_settings import AlterReport, SettingChange
from lithify.reports.page import Page, Table
from lithify.reports.page.wording import count
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """The value in force of an attribute or topic setting, and whether it was set for the stream."""

    value: str
    origin: Origin

    def to_json(self) -> dict[str, str]:
        return {"value": self.value, "from": self.origin}

    @staticmethod
    def fields_of(told: Mapping[str, str]) -> dict[str, str]:
        return {"value": told["value"], "origin": told["from"]}


@dataclass(frozen=True, slots=True)
class StreamInfo(Report):
    """A stream: its attributes, then the topic settings by Kafka's names, and the number of its topics."""

    stream: str
    namespace: str
    """Of the catalog, in which its tables are."""
    attributes: dict[str, AttributeValue]
    topics: int
    keeps: str
    """What topics without settings of their own keep, for a person."""
    error: str | None = None
    """Why its attributes, which are then those that are stored, are invalid."""
    error_code: str | None = None

    def to_json(self) -> dict[str, Any]:
        attributes = {name: value.to_json() for name, value in self.attributes.items()}
        return {**asdict(self), "attributes": attributes}

    @classmethod
    def fields_of(cls, told: Mapping[str, Any]) -> Mapping[str, Any]:
        attributes = {name: AttributeValue.fields_of(value) for name, value in told["attributes"].items()}
        return {**told, "attributes": attributes}

    @classmethod
    def listed(cls, reports: Sequence[StreamInfo]) -> Page:
        return Page("streams", table=Table(("STREAM", "TOPICS", "KEEPS"), reports, _row, left=("STREAM", "KEEPS")))


@dataclass(frozen=True, slots=True)
class EditedTopic(Report):
    """What a change of its stream did to a topic."""

    topic: str
    altered: AlterReport | None = None
    """Null if it has settings of its own for all that changed, had them already, or failed."""
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class StreamEditReport(Report):
    """What `stream edit` changed: attributes as text, before and after, and what became of the topics."""

    stream: str
    attributes: dict[str, SettingChange]
    topics: tuple[EditedTopic, ...]

    @property
    def failed(self) -> tuple[EditedTopic, ...]:
        return tuple(topic for topic in self.topics if topic.error is not None)


@dataclass(frozen=True, slots=True)
class StreamDeleteReport(Report):
    """A stream that was deleted, and its topics with it."""

    stream: str
    deleted: bool
    topics: tuple[str, ...]
    left: tuple[str, ...]
    """Files of other programs in the folders of its topics."""


def _row(info: StreamInfo) -> tuple[str, ...]:
    return info.stream, count(info.topics), info.keeps
