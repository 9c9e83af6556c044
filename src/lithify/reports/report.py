"""What all reports share: the field names are the JSON keys, and a notebook shows the page that the verb prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import methodcaller
from typing import Any, Self, TypeVar

from lithify.reports.page import Page, Section


@dataclass(frozen=True, slots=True)
class Report:
    """A value whose fields are the fields of its JSON object, and that defines how it is shown."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def fields_of(cls, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields in such an object, where some have another name in it."""
        return told

    def page(self) -> Page:
        """What is shown of it; of a kind whose verb prints no table, its fields."""
        fields = [(name, str(value)) for name, value in self.to_json().items()]
        return Page(type(self).__name__, sections=[Section("", fields)])

    @classmethod
    def listed(cls, reports: Sequence[Self]) -> Page | None:
        """The page of several, as the verb that lists them prints it; else the page of one, or None for several."""
        return reports[0].page() if len(reports) == 1 else None

    def _repr_html_(self) -> str:
        from lithify.reports.page.html import page_html

        return page_html(self.page())


def with_lags(value: Any) -> dict[str, Any]:
    """The JSON object of a dataclass with `logs` that each have a `lag`, which is not a field."""
    return {**asdict(value), "logs": [{**asdict(log), "lag": log.lag} for log in value.logs]}


R_co = TypeVar("R_co", bound=Report, covariant=True)


class Reports(tuple[R_co, ...]):
    """Reports of one kind: a tuple that a notebook shows as one table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from lithify.reports.page.html import page_html, pages_html

        if not self:
            return "<p>none</p>"
        page = type(self[0]).listed(self)
        return pages_html(self, methodcaller("page")) if page is None else page_html(page)
