"""Answers over HTTP, of admin interfaces and of issuers of tokens: bounded, and failures in words."""

from __future__ import annotations

from typing import Final

import requests

from lithify.errors import BrokerError

ANSWER_BYTES: Final = 64 << 20
CHUNK_BYTES: Final = 64 << 10


def bounded(answer: requests.Response, url: str) -> bytes:
    """The body. Raises `BrokerError` if it is larger than any should be."""
    body = bytearray()
    for chunk in answer.iter_content(CHUNK_BYTES):
        body += chunk
        if len(body) > ANSWER_BYTES:
            raise BrokerError(f"{url} answers with more than {ANSWER_BYTES >> 20} MiB")
    return bytes(body)


def reason_of(error: BaseException) -> str:
    """In the words of the system, where it has any: HTTP's clients wrap these in four errors of their own."""
    cause = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    return (isinstance(cause, OSError) and cause.strerror) or str(error)
