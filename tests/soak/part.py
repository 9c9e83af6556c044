"""What a soak does besides feeding and cleaning: parts that run along, each with its own findings and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Part(Protocol):
    """One of them. Its methods are called in this order, by one thread."""

    @property
    def name(self) -> str:
        """The key of its figures."""
        ...

    def start(self) -> None:
        """The topics are made, and nothing is fed yet."""
        ...

    def tick(self) -> None:
        """Several times a second, until the cleaners are stopped."""
        ...

    def feeding_ended(self) -> None:
        """The feeders append no more."""
        ...

    def unsettled(self) -> Mapping[str, str]:
        """By what, why it is not at the end yet. Cleaners and parts run until it is empty, for a limited time."""
        ...

    def stop(self) -> None:
        """Ends its programs in order."""
        ...

    def findings(self) -> list[str]:
        """What is not as it must be, in words."""
        ...

    def rows(self) -> list[tuple[str, object]]:
        """Its figures, for people."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Its figures, for programs."""
        ...

    def end(self) -> None:
        """Whatever still runs of it; also after an error."""
        ...
