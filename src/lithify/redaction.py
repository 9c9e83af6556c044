"""Texts without the passwords of the URLs in them, for errors and whatever is printed."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"(://[^\s/:@]*):(?!PASSWORD@)\S*@")
"""The password of a URL, any characters up to the last '@' of the word; our own hints have that very word there."""

_PARAMETER = re.compile(
    r"([?&][\w.-]{0,40}(?:password|passwd|secret|token|credential|signature|apikey|api_key|access_key)=)[^\s&#'\"]+",
    re.I,
)
"""A secret in the query of a URL, as catalog services and databases take it."""


def redacted(text: str) -> str:
    """Any text without the passwords and secrets of the URLs in it."""
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))
