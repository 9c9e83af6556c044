"""Exceptions of the JVM's client of Kafka, as Python sees them."""

from __future__ import annotations

from typing import Any

from lithify.errors.redaction import one_line


def causes_of(error: Any) -> list[tuple[str, str]]:
    """Class and message of a Java exception and its causes, innermost last, at most 10."""
    causes: list[tuple[str, str]] = []
    while error is not None and len(causes) < 10:
        message = one_line(str(error.getMessage() or ""), 300)
        causes.append((str(error.getClass().getName()), message or str(error.getClass().getSimpleName())))
        error = error.getCause()
    return causes
