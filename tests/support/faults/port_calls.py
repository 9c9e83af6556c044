"""What a call of a port is called in tests that strike one after the other."""

from __future__ import annotations

NEVER_STRUCK = ("commit_lock", "document_path")
"""The lock is for progress only, and a path is put together."""


def call_name(method: str, given: tuple[object, ...]) -> str:
    """The name of its method; of a document, with its kind."""
    return f"{method} {given[1]}" if method in ("get_document", "put_document") else method
