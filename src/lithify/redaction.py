"""Texts without the passwords of the URLs in them, for errors and whatever is printed."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"(://[^\s/:@]*):(?!PASSWORD@)\S*@")
"""The password of a URL, any characters up to the last '@' of the word; our own hints have that very word there."""


def redacted(text: str) -> str:
    """Any text without the passwords of the URLs in it."""
    return _PASSWORD.sub(r"\1:***@", text)
