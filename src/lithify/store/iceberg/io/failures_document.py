"""The document of logs whose rounds fail, beside the table (C31).

    lithify/failures.json    {"logs": {"0": {"failures": 3, "retry_ms": ..., ...}}}

It changes without a commit: it says only which logs wait, so that to lose it costs nothing but a
round that is tried too early.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lithify.columnar.files.access import FileAccess
from lithify.errors import DamagedError
from lithify.model.failure import LogFailure
from lithify.store.iceberg.io.documents import read_document_if_there, write_document


def write_failures(access: FileAccess, path: str, failures: Mapping[int, LogFailure]) -> None:
    """Raises `OSError`."""
    logs = {str(partition): failure.to_json() for partition, failure in sorted(failures.items())}
    write_document(access, path, {"logs": logs})


def read_failures(access: FileAccess, path: str) -> dict[int, LogFailure]:
    """By partition; nothing where there is no such file. Raises `DamagedError`, which names it, or `OSError`."""
    try:
        content = read_document_if_there(access, path)
        return {} if content is None else {int(p): _failure(data) for p, data in content["logs"].items()}
    except (DamagedError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = error.message.removeprefix(f"{path}: ") if isinstance(error, DamagedError) else repr(error)
        raise DamagedError(
            f"{path}: the file does not say which logs fail any more: {why}",
            hint="delete this file: it only says which logs wait or are quarantined, and they are then tried again",
        ) from error


def _failure(data: Mapping[str, Any]) -> LogFailure:
    failure = LogFailure.from_json(data)
    for number in (failure.failures, failure.first_ms, failure.last_ms, failure.retry_ms):
        if type(number) is not int:
            raise TypeError(f"{number!r} is not a number")
    if type(failure.error) is not str or type(failure.quarantined) is not bool:
        raise TypeError(f"{failure!r} is not a failure")
    return failure
