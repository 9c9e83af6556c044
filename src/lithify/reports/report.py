"""What all reports share: the field names are the JSON keys, and a notebook shows what the verb prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True)
class Report:
    """A value whose fields are those of its JSON object."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        from lithify.reports.notebook.html import html_of

        return html_of(self)


def with_lags(value: Any) -> dict[str, Any]:
    """The JSON object of a dataclass with `logs` that each have a `lag`, which is no field."""
    return {**asdict(value), "logs": [{**asdict(log), "lag": log.lag} for log in value.logs]}


R_co = TypeVar("R_co", bound=Report, covariant=True)


class Reports(tuple[R_co, ...]):
    """Reports of one kind: a tuple that a notebook shows as one table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from lithify.reports.notebook.html import html_of_several

        return html_of_several(self)
