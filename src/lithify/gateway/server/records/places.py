"""Where a page of records has ended, as the text that a client sends to go on there.

It has the cursor of the log, with which a reader that comes back is told if it would miss a delete (C49). Reading up to
a point finds a version for each page that still has all that counted there (C69), so a round between two pages does no
harm. Other records below the cursor are an error. Earlier versions of Lithify wrote the offset alone there.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any

from lithify.errors import InvalidInputError
from lithify.model.cursor import Cursor


@dataclass(frozen=True, slots=True)
class Place:
    """The next record of a log; the logs with lower numbers were read."""

    partition: int
    at: Cursor | int

    def text(self) -> str:
        at: Any = self.at if isinstance(self.at, int) else self.at.to_json()
        return urlsafe_b64encode(json.dumps([self.partition, at], separators=(",", ":")).encode()).decode().rstrip("=")

    @classmethod
    def parsed(cls, text: str) -> Place:
        """Raises `InvalidInputError`."""
        try:
            partition, at = json.loads(urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
            if type(partition) is int and type(at) is int:
                return cls(partition, at)
            if type(partition) is int:
                return cls(partition, Cursor.from_json(at))
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise InvalidInputError(
            "cursor is not one of an answer", hint="send it as it came in the header Lithify-Cursor"
        )
